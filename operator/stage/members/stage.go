// Package members is the stage of etcd: every member serves, as the one that it was
// recorded as, from a pod of the latest template; or the external etcd answers.
package members

import (
	"context"
	"net"

	"github.com/clusterregistry/operator/internal/etcdclient"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/turn"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/volumes"
)

// Stage is the stage in one reconcile. All fields but Dial, Begin and Remembered are required.
type Stage struct {
	*operand.Objects
	// Ask asks the members.
	Ask func(context.Context, etcd.Access) etcd.State
	// Dial connects to a member, nil for TLS over TCP.
	Dial func(context.Context, etcdclient.Member) (net.Conn, error)
	// Disarm ends the alarm NOSPACE.
	Disarm func(context.Context, etcd.Access, etcd.State) error
	// Mark writes the operator's mark into etcd.
	Mark func(context.Context, etcd.Access, etcd.Position) (etcd.Position, error)
	// Ownership says whose an external etcd is.
	Ownership   Ownership
	Authorities *trust.Authorities
	// Identity is the record of the registry's own etcd.
	Identity *identity.Store
	// Volumes are those that the registry's own etcd has.
	Volumes volumes.Volumes
	// Remembered is the newest revision that etcd was seen at, zero when none is known.
	Remembered int64
	// Release is the release that members are rendered of.
	Release string
	// Begin returns the record to begin with where a backup is to be restored, from that of
	// an empty etcd; nil where etcd begins empty, or with the data that it has.
	Begin func(*etcd.Record) *etcd.Record

	found pass.Members
}

// done is the verdict of a part that has nothing to say.
var done verdict.Verdict

// rolls returns the verdict on a replacement with what is being replaced before what that
// waits for.
func (s *Stage) rolls(v verdict.Verdict) verdict.Verdict {
	s.found.Detail = v.Message
	return turn.Announce(s.found.Rolling, v)
}
