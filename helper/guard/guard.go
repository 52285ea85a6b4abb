// Package guard keeps an etcd member from starting empty where it had data, and
// from starting with the data of another cluster or member. It compares what
// the data dir says of itself with what the operator recorded, and it only
// reads.
//
// A member may start empty only before its cluster formed, or when a person has
// added it to the cluster again; everything hangs on not believing that for too
// long. The record is mounted, and kubelet may bring a change of it to the volume
// two minutes late. So it also comes in environment variables, which kubelet
// looks up whenever it starts the container, and a member starts empty only if
// both allow it: a record that is late can hold a member back for a while, but
// never let one start that has lost its data.
//
// Its errors are for people: kubelet shows the last 2048 bytes of a failed
// container's output as the reason why the container does not run.
package guard

import (
	"errors"
	"fmt"

	"github.com/clusterregistry/operator/internal/contract"
)

// The environment variables of Passed. etcd reads the first one, too.
const (
	StateVariable   = "ETCD_INITIAL_CLUSTER_STATE"
	JoiningVariable = "RECORDED_JOINING"
)

// Passed is what kubelet read from the record when it started the container. The
// state is empty in an init container, which does not need it: its Pod has just
// been given the record.
type Passed struct{ State, Joining string }

// Start says how etcd may start.
type Start struct {
	// Found is a line that says what was found.
	Found string
	// State is the value for etcd's --initial-cluster-state.
	State string
}

// Refusal is the error of a member that must not start, or of which it is not
// known whether it may.
type Refusal struct{ err error }

func (r *Refusal) Error() string { return r.err.Error() }
func (r *Refusal) Unwrap() error { return r.err }

// identity are the IDs of an etcd cluster and of one of its members; 0, which
// etcd gives to none, stands for an ID that isn't known.
type identity struct{ cluster, member uint64 }

// Check returns how etcd may start as the named member on the data dir, or else
// a *Refusal that says why it may not and what to do. The identity dir is
// described at readRecord.
func Check(dataDir, identityDir, member string, passed Passed) (Start, error) {
	r, err := readRecord(identityDir, member)
	if err != nil {
		return Start{}, &Refusal{err}
	}
	r.restrict(member, passed)
	d, err := readData(dataDir)
	if err != nil {
		return Start{}, &Refusal{fmt.Errorf("read the data of etcd member %s: %w; etcd does not start on data that can't be checked", member, err)}
	}
	found, err := decide(member, dataDir, r, d)
	if err != nil {
		return Start{}, &Refusal{err}
	}
	return Start{Found: found, State: r.state}, nil
}

// decide is Check without reading.
func decide(member, dataDir string, r record, d data) (string, error) {
	where := fmt.Sprintf("etcd member %s (%s in the volume of claim %s)", member, dataDir, contract.EtcdMemberClaim(member))
	switch {
	case errors.Is(d.damage, errNoLog) && r.mayStartEmpty():
		// etcd makes its log last: so ends a first start that was interrupted.
		return fmt.Sprintf("%s has no log yet, and is to have no data: it starts again as %s", where, r.role()), nil
	case d.damage != nil:
		return "", fmt.Errorf("%s has damaged data: %w. Starting on it could lose or corrupt data (%s is recorded). %s", where, d.damage, r, d.advice(r))
	case !d.exists() && r.mayStartEmpty():
		return fmt.Sprintf("%s has no data, and is to have none: it starts as %s", where, r.role()), nil
	case !d.exists():
		return "", fmt.Errorf("%s has no data, but %s is recorded: its data is lost, or its volume was replaced. Starting empty would lose or corrupt data. %s", where, r, d.advice(r))
	case differ(r.cluster, d.cluster):
		return "", fmt.Errorf("%s has the data of cluster %x, but %s is recorded: its volume is that of another cluster. %s", where, d.cluster, r, d.advice(r))
	case differ(r.member, d.member):
		return "", fmt.Errorf("%s has the data of member ID %x, but %s is recorded: its volume is that of another member, or from before this member was replaced. %s", where, d.member, r, d.advice(r))
	}
	return fmt.Sprintf("%s has the data of cluster %x, member ID %x; %s is recorded", where, d.cluster, d.member, r), nil
}

// differ is false when nothing is recorded to compare with.
func differ(recorded, found uint64) bool { return recorded != 0 && recorded != found }

// advice says what to do about data that etcd must not start on.
func (d data) advice(r record) string {
	if d.damage != nil && r.mayStartEmpty() {
		return "If this cluster never ran, its first start was interrupted and nothing is lost: delete this claim and this Pod, and both are created again. Else bring the data back"
	}
	return "Bring back the volume with this member's data; if it is really gone, see the guide of the operator on replacing a member"
}
