// Package endpoint is the last stage of an independent registry: clients reach it at an
// address that its certificate is valid for.
package endpoint

import (
	"context"

	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Stage is the stage in one reconcile. All fields but Addresses are required.
type Stage struct {
	servers.Access
	// Addresses lead to the servers from outside of the host cluster, the one for clients
	// first; without any, clients use the Service's name.
	Addresses []string
	// Serving are the CAs that clients are to trust, in PEM.
	Serving []byte
	// Certificates is what the first stage found.
	Certificates verdict.Verdict
	// Meet tells what one meets at an address, host and port: see [health.Meet].
	Meet func(ctx context.Context, address string) (health.Met, error)
	// Silences is what earlier reconciles met.
	Silences *Silences
}

// done is the verdict of a part that has nothing to say.
var done verdict.Verdict
