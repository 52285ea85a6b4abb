// Package membership changes the members of a registry's own etcd: it adds and removes them
// until there are as many as spec.etcd.replicas says, and has a new member take the place of
// one whose data is gone, or that a person wants replaced. What is next is decided by
// operator/etcd/plan from the record of etcd's identity and from what is observed; this
// package observes, and takes one step in each reconcile.
//
// A change of size and a replacement are operations of their own. While another operation is
// under way, such as an upgrade, a member is replaced nevertheless: that operation waits for
// it.
package membership

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/snapshot"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Change is a change of etcd's members in one reconcile. All fields are required.
type Change struct {
	*operand.Objects
	// Identity is the record, which the steps change.
	Identity *identity.Store
	// State is what etcd said, and Etcd is how it is changed.
	State etcd.State
	Etcd  Etcd
	// Repair is true while another operation is under way: members are replaced, and their
	// number stays, unless it Grows.
	Repair, Grows bool
	// TakeSnapshot takes a snapshot of etcd; see snapshot.Take.
	TakeSnapshot func(ctx context.Context, name string) (snapshot.Saved, verdict.Verdict)

	// within is when a member is due that waits to be replaced, zero when none does.
	within time.Duration
	// unmoved says why members whose claims are of another StorageClass than is asked for keep
	// them, nothing when none does.
	unmoved string
	// differs is the member whose data differs from that of all others, as far as known; empty
	// when there is none.
	differs string
	// asked is true when members are to be changed, whether that can be done now or not.
	asked bool
}

// Etcd changes an etcd, as etcd.Access does. The State is what the change was decided from.
type Etcd interface {
	// AddLearner adds a member without a vote, at its URL for members.
	AddLearner(ctx context.Context, s etcd.State, peerURL string) error
	// Promote gives the learner with the ID a vote.
	Promote(ctx context.Context, s etcd.State, memberID string) error
	// MoveLeader has another member lead.
	MoveLeader(ctx context.Context, s etcd.State) error
	// Remove removes the member with the ID.
	Remove(ctx context.Context, s etcd.State, memberID string) error
	// Agree returns nil when the named members hold the same data, and *etcd.DataDiffers when
	// they do not.
	Agree(ctx context.Context, names ...string) error
	// Outlier returns nil when all but the named member hold the same data, also while the
	// alarm CORRUPT is raised, and that one holds other data or does not answer; with no
	// name, when all do. It may say what it found a short while ago.
	Outlier(ctx context.Context, member string) error
	// Compare returns what Outlier does, as it is now.
	Compare(ctx context.Context, member string) error
	// DisarmCorrupt ends the alarm CORRUPT.
	DisarmCorrupt(ctx context.Context, s etcd.State) error
}

// Next returns the next step, once it is known. It notes in the status which members are
// lost.
func (c *Change) Next(ctx context.Context) (plan.Step, verdict.Verdict) {
	record, v := c.record()
	if !v.Complete() {
		return plan.Step{}, v
	}
	seen, v := c.observe(ctx, record)
	if !v.Complete() {
		return plan.Step{}, v
	}
	if v := c.recreated(ctx, seen.Recreate); !v.Complete() {
		return plan.Step{}, v
	}
	spec := c.spec()
	c.asked = len(seen.Lost) > 0 || len(seen.Moves) > 0 || c.unmoved != "" || len(record.IDs) != spec.Replicas || seen.Servers != spec.Replicas && seen.Servers <= Most ||
		slices.ContainsFunc(spec.Replace, func(id string) bool { return slices.Contains(slices.Collect(maps.Values(record.IDs)), id) })
	return c.unlessUnmoved(plan.Next(spec, record, seen)), verdict.Verdict{}
}

// Asked reports whether members are to be changed, also where that has to wait. It is known
// after Next.
func (c *Change) Asked() bool { return c.asked }

// Within returns when to look again after lost members that wait for
// spec.etcd.replaceAfter, zero when none does. It is known after Next.
func (c *Change) Within() time.Duration { return c.within }

// spec returns what is asked for.
func (c *Change) spec() plan.Spec {
	spec := plan.Spec{Replicas: int(c.Registry.Spec.Etcd.Replicas)}
	if c.Repair && !c.Grows {
		spec.Replicas = int(cmp.Or(c.Identity.Record.Target, c.Identity.Record.Replicas))
	}
	for id := range strings.SplitSeq(c.Registry.Annotations[operatorv1alpha1.AnnotationReplaceMember], ",") {
		if id = strings.TrimSpace(id); id != "" {
			spec.Replace = append(spec.Replace, id)
		}
	}
	return spec
}

// record returns what is recorded, as the plan knows it.
func (c *Change) record() (plan.Record, verdict.Verdict) {
	from := c.Identity.Record
	out := plan.Record{Registry: c.Registry.Name, Formed: from.InitialClusterState == contract.StateExisting && from.ClusterID != "",
		Target: int(cmp.Or(from.Target, from.Replicas)), Claimed: int(cmp.Or(from.Claimed, from.Replicas)), Claim: from.LeavingClaim, IDs: map[int]string{}, Abandoned: map[int]string{}, Joining: plan.None, Leaving: plan.None}
	for key, ordinal := range map[string]*int{from.Joining: &out.Joining, from.Leaving: &out.Leaving} {
		if key == "" {
			continue
		}
		if *ordinal = c.ordinal(key); *ordinal == plan.None {
			return out, c.blocked("ConfigMap %s, the record of etcd's identity, names %q as a member that joins or leaves, and the members are named %s and so on: correct the keys joining and leaving there", c.Name(contract.IdentitySuffix), key, c.member(0))
		}
	}
	for name, id := range from.Members {
		ordinal := c.ordinal(name)
		if ordinal == plan.None {
			return out, c.blocked("ConfigMap %s, the record of etcd's identity, has a member %q, and the members are named %s and so on: remove that key there", c.Name(contract.IdentitySuffix), name, c.member(0))
		}
		out.IDs[ordinal] = id
	}
	for ordinal := range Most {
		if claim := from.Abandons(c.member(ordinal)); claim.UID != "" {
			out.Abandoned[ordinal] = claim.UID
		}
	}
	return out, verdict.Verdict{}
}

// Most is how many members an etcd can have, which bounds what is looked for.
const Most = 5

// member returns the name of a member.
func (c *Change) member(ordinal int) string { return contract.EtcdMember(c.Registry.Name, ordinal) }

// members returns all members that there can be, by their ordinals.
func (c *Change) members() []render.EtcdMember {
	names := make([]string, Most)
	for i := range names {
		names[i] = c.member(i)
	}
	return render.EtcdMembers(c.Registry, names)
}

// ordinal returns that of a member, plan.None for a name of none.
func (c *Change) ordinal(name string) int {
	return slices.IndexFunc(c.members(), func(m render.EtcdMember) bool { return m.Name == name }) // plan.None is -1
}

// blocked is the verdict on what only a person can resolve.
func (c *Change) blocked(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonMembersBlocked, format, args...).In(verdict.Backstop)
}

// changing is the verdict on what comes without a person.
func (c *Change) changing(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonMembersChanging, format, args...).In(verdict.Soon)
}
