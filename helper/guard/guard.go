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
// never let one start that has lost its data. Of a member that was added again, both may
// be late, since it may have got a vote a moment ago: so the members that run are asked,
// and it starts empty only while they list it as a learner that was never started.
//
// Its errors are for people: kubelet shows the last 2048 bytes of a failed
// container's output as the reason why the container does not run.
package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/internal/contract"
)

// The environment variables of Passed. etcd reads the first one, too, and the last one,
// which the guard sets.
const (
	StateVariable          = "ETCD_INITIAL_CLUSTER_STATE"
	JoiningVariable        = "RECORDED_JOINING"
	RecoveryVariable       = "RECORDED_RECOVERY"
	InitialClusterVariable = "ETCD_INITIAL_CLUSTER"
)

// Member is what a member's container is configured with.
type Member struct {
	// Name is that of the member, and DataDir is etcd's own.
	Name, DataDir string
	// IdentityDir is where the record is mounted; see readRecord.
	IdentityDir string
	Cluster     Cluster
}

// Passed is what kubelet read from the record when it started the container. The
// state is empty in an init container, which does not need it: its Pod has just
// been given the record.
type Passed struct{ State, Joining, Recovery string }

// Start says how etcd may start.
type Start struct {
	// Found is a line that says what was found.
	Found string
	// State is the value for etcd's --initial-cluster-state.
	State string
	// InitialCluster is the value for etcd's --initial-cluster, empty for a member with
	// data, which does not need it.
	InitialCluster string
	// Settled is true of a member whose data is the recorded one, while no recovery is
	// recorded: what recoveries have left is of no use.
	Settled bool
}

// Refusal is the error of a member that must not start.
type Refusal struct {
	err error
	// Lost is true when the member's data is gone or damaged, and false when there is other
	// data, or data that can't be read.
	Lost bool
}

func (r *Refusal) Error() string { return r.err.Error() }
func (r *Refusal) Unwrap() error { return r.err }

// Undecided is the error of a member of which it is not known yet whether it may start: the
// record is late, incomplete or damaged, or those that know do not answer.
type Undecided struct {
	err error
	// Empty is true of a member that has no data, and is to have none once it may start.
	Empty bool
}

func (u *Undecided) Error() string { return u.err.Error() }
func (u *Undecided) Unwrap() error { return u.err }

// undecided returns an *Undecided with a text, as fmt.Errorf does.
func undecided(format string, args ...any) error { return &Undecided{err: fmt.Errorf(format, args...)} }

// identity are the IDs of an etcd cluster and of one of its members; 0, which
// etcd gives to none, stands for an ID that isn't known.
type identity struct{ cluster, member uint64 }

// Check returns how etcd may start as a member, or else a *Refusal or an *Undecided that
// says why it may not and what to do.
func Check(ctx context.Context, m Member, passed Passed) (Start, error) {
	r, err := readRecord(m.IdentityDir, m.Name)
	if err != nil {
		return Start{}, &Undecided{err: err}
	}
	r.restrict(m.Name, passed)
	d, err := readData(m.DataDir)
	if err != nil {
		return Start{}, &Refusal{err: fmt.Errorf("read the data of etcd member %s: %w; etcd does not start on data that can't be checked", m.Name, err)}
	}
	start := Start{State: r.state, Settled: r.recovery == "" && passed.Recovery == "" && d.exists() && d.identity == r.identity}
	if start.Found, err = decide(m.Name, m.DataDir, r, d); err == nil && !d.exists() {
		start.InitialCluster, err = m.begin(ctx, r)
	}
	switch {
	case errors.As(err, new(*Undecided)): // decide knows, so it is begin that does not
		return Start{}, &Undecided{err, r.joins}
	case err != nil:
		return Start{}, &Refusal{err: err, Lost: d.damage != nil || !d.exists()}
	}
	return start, nil
}

// begin returns the value of etcd's --initial-cluster of a member that may start empty by
// what is recorded. One that joins must be what the members that run take it for, too.
func (m Member) begin(ctx context.Context, r record) (string, error) {
	where := fmt.Sprintf("etcd member %s has no data, and %s is recorded", m.Name, r)
	if !r.joins {
		if !slices.Contains(r.members, m.Name) {
			return "", undecided("%s, but the key %s of the record does not have this member (found: %q): it is not known with which ones it is to form etcd, so it does not start; the ConfigMap mounted in %s is the operator's, which has to repair it",
				where, contract.RecordMembers, strings.Join(r.members, contract.RecordSeparator), m.IdentityDir)
		}
		return m.Cluster.initialCluster(r.members), nil
	}
	if r.member == 0 {
		return "", undecided("%s with the key %s, but not under which ID it was added to etcd: record that in %s%s, too", where, contract.RecordJoining, contract.RecordMember, m.Name)
	}
	l, err := m.Cluster.list(ctx, r.others(m.Name))
	if err != nil {
		return "", undecided("%s with the key %s, but the members that run can't be asked whether it may join: %w; it does not start before one of them has answered", where, contract.RecordJoining, err)
	}
	out, err := l.join(m.Name, url(m.Cluster.PeerURL, m.Name), r)
	switch {
	case errors.As(err, new(*Undecided)):
		return "", fmt.Errorf("%s with the key %s, but %w", where, contract.RecordJoining, err)
	case err != nil:
		return "", fmt.Errorf("%s with the key %s, but %w. Starting empty could lose or corrupt data; see the guide of the operator on replacing a member", where, contract.RecordJoining, err)
	}
	return out, nil
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
