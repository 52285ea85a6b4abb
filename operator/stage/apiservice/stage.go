// Package apiservice is the last stage of an aggregated registry: the host cluster itself
// serves the registry's API.
package apiservice

import (
	"k8s.io/client-go/discovery"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Group is the API group that registries serve.
const Group = v1beta1.GroupName

// Stage is the stage in one reconcile. All fields but Servers and Replaced are required.
type Stage struct {
	*operand.Objects
	// Discovery asks the host cluster what it serves.
	Discovery discovery.DiscoveryInterface
	// HostCA signs for the host cluster's API server, in PEM.
	HostCA []byte
	// MayAggregate reports whether registries of a namespace may be part of the host cluster's API.
	MayAggregate func(namespace string) bool
	// Servers is what the stage before found.
	Servers pass.Servers
	// Replaced is true while the servers may show a certificate of a CA that is published, and
	// not in use any more.
	Replaced bool

	// left is true where the reconcile has ended before this stage, and held says what would
	// have made it read-only by then.
	left bool
	held string
}

// Found is what the stage found.
type Found struct {
	verdict.Verdict
	// TakenBy names who serves the API group on the host cluster in the registry's place,
	// empty where no one does: requests through the host cluster lead there.
	TakenBy string
}

// done is the verdict of a part that has nothing to say.
var done verdict.Verdict
