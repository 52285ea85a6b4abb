// Package certificates is the first stage: it has cert-manager issue the registry's
// certificates, and decides what is published of a CA that was replaced.
package certificates

import (
	"github.com/clusterregistry/operator/operator/issuance"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Stage is the stage in one reconcile. All fields are required.
type Stage struct {
	*operand.Objects
	// CertManager knows whether cert-manager is installed.
	CertManager *issuance.CertManager
	// Authorities are the registry's CAs.
	Authorities *trust.Authorities
}

// done is the verdict of a part that has nothing to say.
var done verdict.Verdict
