// Package controller is the stage of a registry's controller, which acts on what is in
// the registry: it runs where spec.controllers turns a function on,
// after the servers of the same release. Nothing that clients of the registry need
// depends on it.
package controller

import (
	"github.com/clusterregistry/operator/operator/issuance"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// Stage is the stage in one reconcile. All fields but NotAllowed, TakenBy and Unreached are required.
type Stage struct {
	*operand.Objects
	// CertManager knows whether cert-manager is installed.
	CertManager *issuance.CertManager
	// Authorities are the registry's CAs.
	Authorities *trust.Authorities
	// Release is what is rendered.
	Release version.Release
	// NotAllowed says why no controller may run in the registry's namespace, empty where one
	// may.
	NotAllowed string
	// TakenBy names who serves the API group on the host cluster in the registry's place,
	// empty where no one does.
	TakenBy string

	// Unreached says in which namespaces that the spec names the controller may not work, and
	// what lets it, empty where there are none.
	Unreached string

	found Found
}

// Found is what the stage found. Its verdict never blocks anything else.
type Found struct {
	verdict.Verdict
	// Rolling says how far a new controller is rolled out, nothing when none is.
	Rolling string
}

// done is the verdict of a part that has nothing to say.
var done verdict.Verdict
