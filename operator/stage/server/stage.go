// Package server is the stage of the API servers: all of them are of the latest template,
// and each answers the operator itself.
package server

import (
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Stage is the stage in one reconcile. Access, Serving and Identity are required.
type Stage struct {
	servers.Access
	// Serving are the CAs that the servers' certificate may be signed by, in PEM.
	Serving []byte
	// Identity is the record of the registry's own etcd. It is given the release that runs,
	// unless Upgrading: then the upgrade records releases.
	Identity  *identity.Store
	Upgrading bool
	// MembersReplacing is true while etcd members are replaced, or can be and are to be.
	MembersReplacing bool
	// Held says what of the spec the servers don't get. Blocked, none is made or changed.
	Held verdict.Verdict

	found pass.Servers
}

// done is the verdict of a part that has nothing to say.
var done verdict.Verdict
