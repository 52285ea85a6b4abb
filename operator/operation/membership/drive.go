package membership

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/snapshot"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Drive is what one reconcile does about the members of a registry's own etcd: it begins a
// change, and takes it one step further.
type Drive struct {
	pass.Pass
	// Comparisons are those of members' data, of all registries.
	Comparisons *etcd.Comparisons
	// TakeSnapshot takes a snapshot of etcd, with what comes before it.
	TakeSnapshot func(ctx context.Context, name string) (snapshot.Saved, verdict.Verdict)
}

// Found is what came of a step.
type Found struct {
	verdict.Verdict
	// Lost says when a new member takes the place of one whose data is lost, nothing when none
	// does.
	Lost string
}

// Changeable reports whether etcd's members can be changed, as far as they were observed.
func (d Drive) Changeable() bool {
	return d.Identity.Record != nil && d.Registry.Spec.Etcd.External == nil && len(d.Members.State.Members) > 0 && d.Frozen() == ""
}

// Change returns a change of etcd's members as they were observed. Beside another operation, it
// only replaces members: that operation waits for them. Of the only member, of which the claim was
// deleted, it is others that lead out of that: they are added.
func (d Drive) Change() *Change {
	under := d.Registry.Status.Operation
	halted, _ := d.Halted()
	return &Change{Objects: d.Objects, Identity: d.Identity, State: d.Members.State, Etcd: d.access(),
		Repair: under != nil && !operation.ChangesMembers(under), Grows: d.OnlyClaimDeleted() && !d.rolls() && halted == "", TakeSnapshot: d.TakeSnapshot}
}

// Step takes a change of members that are Changeable one step further, or begins one.
func (d Drive) Step(ctx context.Context, change *Change) Found {
	step, v := change.Next(ctx)
	found := Found{Lost: d.lost(change.Within())}
	if v.Complete() {
		v = d.step(ctx, change, step)
	}
	if within := change.Within(); within > 0 && (v.After == 0 || within < v.After) {
		v = v.In(within)
	}
	found.Verdict = v
	return found
}

// lost says when a new member takes the place of one whose data is lost, of which it is known
// within what time.
func (d Drive) lost(within time.Duration) string {
	if within == 0 || d.ReadOnly() {
		return ""
	}
	// The time does not change from one reconcile to the next.
	return "a new member takes its place at " + d.Now.Add(within).UTC().Truncate(time.Second).Format(time.RFC3339) + " (spec.etcd.replaceAfter)"
}

// step takes a step, in an operation of its own unless another one is under way.
func (d Drive) step(ctx context.Context, change *Change, step plan.Step) verdict.Verdict {
	status := &d.Registry.Status
	waits := step.Action == plan.Wait || step.Action == plan.Hold
	switch {
	case operation.ChangesMembers(status.Operation):
		return d.drive(ctx, Handler{Change: change, Step: step})
	case step.Action == plan.Done, waits && !change.Asked(), d.ReadOnly():
		return verdict.Verdict{}
	case step.Action == plan.ReleaseVolume:
		if v := change.Act(ctx, step); v.Err != nil {
			return v
		}
		return verdict.Verdict{}.In(verdict.AtOnce) // the registry is as it is to be
	case waits, change.Repair, step.Action == plan.RecreateSet:
		return change.Act(ctx, step)
	}
	begun := change.Begin(step)
	begins := begun.Type == operatorv1alpha1.OperationScale && !d.Identity.Record.Changing()
	if begins && !d.Installed() && !d.OnlyClaimDeleted() {
		return verdict.Verdict{} // what there is comes up first, unless it can't without more members
	}
	if begins && d.rolls() {
		return verdict.Waiting(operatorv1alpha1.ReasonMembersChanging, "the number of etcd members is changed from %s to %s when nothing of the registry is being replaced any more", begun.From, begun.To).In(verdict.Soon)
	}
	operation.Begin(d.Registry, begun)
	starts := "starts"
	if step.Message != "" {
		starts += ", since " + step.Message
	}
	return Handler{Change: change, Step: step}.Waiting("%s", starts).In(verdict.AtOnce)
}

// rolls reports whether servers or members are being replaced by such of the latest template.
// Members that can't be, since they move where their volumes can't follow, wait for more
// members.
func (d Drive) rolls() bool {
	moves := d.Members.Reason == operatorv1alpha1.ReasonMembersBlocked || d.Members.Reason == operatorv1alpha1.ReasonMembersChanging
	return d.Servers.Rolling != "" || d.ReplacingMembers() != "" && !moves
}

// drive drives the operation that changes members.
func (d Drive) drive(ctx context.Context, handler Handler) verdict.Verdict {
	return operation.Run{Pass: d.Pass}.Step(ctx, operation.Operation{
		Types: []operatorv1alpha1.OperationType{operatorv1alpha1.OperationScale, operatorv1alpha1.OperationReplacement},
		Handler: func(context.Context) (operation.Handler, verdict.Verdict) {
			if reason, until := d.Halted(); d.ReadOnly() {
				return nil, verdict.Waiting(reason, "%s: it continues when %s", handler.Title(), until).In(verdict.Resync)
			}
			return handler, verdict.Verdict{}
		},
		Ended: func(operation.Progress) {
			d.Event(corev1.EventTypeNormal, "MembersChanged", operatorv1alpha1.ConditionEtcdReady, "%s", handler.Completed())
		},
	})
}

// access returns how the recorded members are changed.
func (d Drive) access() access {
	recorded, name := d.Identity.Record.Members, client.ObjectKeyFromObject(d.Registry).String()
	alarm, _ := d.Members.State.Raised()
	return access{d.Members.Access.Among(slices.Collect(maps.Keys(recorded))...), func(member string, ask func() error) error {
		return d.Comparisons.Outlier(etcd.Compared{Etcd: name, Member: member, ID: recorded[member], Alarm: alarm}, d.Now, ask)
	}, func() { d.Comparisons.Forget(name) }}
}

// access is how members are changed.
type access struct {
	etcd.Access
	// seldom answers what a comparison of data says, from memory where that was asked a short
	// while ago: each is a scan of all that every member has.
	seldom func(member string, ask func() error) error
	// forget has the next one be asked for.
	forget func()
}

// Outlier implements Etcd. That a member does not answer may be over in a moment, and
// is remembered for no longer than that.
func (a access) Outlier(ctx context.Context, member string) error {
	err := a.seldom(member, func() error { return a.Access.Outlier(ctx, member) })
	if errors.As(err, new(*etcd.NoAnswer)) {
		return nil
	}
	return err
}

// Compare implements Etcd.
func (a access) Compare(ctx context.Context, member string) error {
	a.forget()
	return a.Outlier(ctx, member)
}

// Agree implements Etcd.
func (a access) Agree(ctx context.Context, names ...string) error {
	return a.Among(names...).Agree(ctx)
}
