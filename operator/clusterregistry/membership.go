package clusterregistry

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
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/verdict"
)

// changeMembers takes a change of the members of the registry's own etcd one step further,
// or begins one. Beside another operation, it only replaces members: that operation waits for
// them. It does nothing as long as etcd was not observed.
func (r *Reconciler) changeMembers(ctx context.Context, s *scope) verdict.Verdict {
	if !s.changeable() {
		return done
	}
	if s.Members.Acted {
		return done.In(verdict.AtOnce) // what was observed is no longer so
	}
	change := r.memberChange(s)
	if v := r.noteQuorum(ctx, s, change); !v.Complete() {
		return v
	}
	step, v := change.Next(ctx)
	s.noteLost(change.Within())
	if v.Complete() {
		v = r.stepMembers(ctx, s, change, step)
	}
	if within := change.Within(); within > 0 && (v.After == 0 || within < v.After) {
		v = v.In(within)
	}
	return v
}

// changeable reports whether etcd's members can be changed, as far as they were observed.
func (s *scope) changeable() bool {
	return s.Identity.Record != nil && s.Registry.Spec.Etcd.External == nil && len(s.Members.State.Members) > 0 && s.Frozen() == ""
}

// memberChange returns a change of etcd's members as they were observed.
func (r *Reconciler) memberChange(s *scope) *membership.Change {
	under := s.Registry.Status.Operation
	return &membership.Change{Objects: s.Objects, Identity: s.Identity, State: s.Members.State, Etcd: r.membersAccess(s),
		Repair: under != nil && !operation.ChangesMembers(under), TakeSnapshot: s.saveBefore}
}

// stepMembers takes a step, in an operation of its own unless another one is under way.
func (r *Reconciler) stepMembers(ctx context.Context, s *scope, change *membership.Change, step plan.Step) verdict.Verdict {
	status := &s.Registry.Status
	waits := step.Action == plan.Wait || step.Action == plan.Hold
	switch {
	case operation.ChangesMembers(status.Operation):
		return s.driveMembers(ctx, membership.Handler{Change: change, Step: step})
	case step.Action == plan.Done, waits && !change.Asked(), s.ReadOnly():
		return done
	case step.Action == plan.ReleaseVolume:
		if v := change.Act(ctx, step); v.Err != nil {
			return v
		}
		return done.In(verdict.AtOnce) // the registry is as it is to be
	case waits, change.Repair, step.Action == plan.RecreateSet:
		return change.Act(ctx, step)
	}
	begun := change.Begin(step)
	begins := begun.Type == operatorv1alpha1.OperationScale && !s.Identity.Record.Changing()
	if begins && !s.Installed() {
		return done // what there is comes up first
	}
	if begins && s.rolls() {
		return verdict.Waiting(operatorv1alpha1.ReasonMembersChanging, "the number of etcd members is changed from %s to %s when nothing of the registry is being replaced any more", begun.From, begun.To).In(verdict.Soon)
	}
	operation.Begin(s.Registry, begun)
	starts := "starts"
	if step.Message != "" {
		starts += ", since " + step.Message
	}
	return membership.Handler{Change: change, Step: step}.Waiting("%s", starts).In(verdict.AtOnce)
}

// rolls reports whether servers or members are being replaced by such of the latest template.
// Members that can't be, since they move where their volumes can't follow, wait for more
// members.
func (s *scope) rolls() bool {
	moves := s.Members.Reason == operatorv1alpha1.ReasonMembersBlocked || s.Members.Reason == operatorv1alpha1.ReasonMembersChanging
	return s.Servers.Rolling != "" || s.ReplacingMembers() != "" && !moves
}

// driveMembers drives the operation that changes members.
func (s *scope) driveMembers(ctx context.Context, handler membership.Handler) verdict.Verdict {
	return s.driver().Step(ctx, operation.Operation{
		Types: []operatorv1alpha1.OperationType{operatorv1alpha1.OperationScale, operatorv1alpha1.OperationReplacement},
		Handler: func(context.Context) (operation.Handler, verdict.Verdict) {
			if reason, until := s.Halted(); s.ReadOnly() {
				return nil, verdict.Waiting(reason, "%s: it continues when %s", handler.Title(), until).In(verdict.Resync)
			}
			return handler, done
		},
		Ended: func(operation.Progress) {
			s.Event(corev1.EventTypeNormal, "MembersChanged", operatorv1alpha1.ConditionEtcdReady, "%s", handler.Completed())
		},
	})
}

// membersAccess returns how the recorded members are changed.
func (r *Reconciler) membersAccess(s *scope) membersAccess {
	recorded, name := s.Identity.Record.Members, client.ObjectKeyFromObject(s.Registry).String()
	alarm, _ := s.Members.State.Raised()
	return membersAccess{s.Members.Access.Among(slices.Collect(maps.Keys(recorded))...), func(member string, ask func() error) error {
		return r.comparisons.Outlier(etcd.Compared{Etcd: name, Member: member, ID: recorded[member], Alarm: alarm}, s.Now, ask)
	}, func() { r.comparisons.Forget(name) }}
}

// membersAccess is how members are changed.
type membersAccess struct {
	etcd.Access
	// seldom answers what a comparison of data says, from memory where that was asked a short
	// while ago: each is a scan of all that every member has.
	seldom func(member string, ask func() error) error
	// forget has the next one be asked for.
	forget func()
}

// Outlier implements membership.Etcd. That a member does not answer may be over in a moment, and
// is remembered for no longer than that.
func (a membersAccess) Outlier(ctx context.Context, member string) error {
	err := a.seldom(member, func() error { return a.Access.Outlier(ctx, member) })
	if errors.As(err, new(*etcd.NoAnswer)) {
		return nil
	}
	return err
}

// Compare implements membership.Etcd.
func (a membersAccess) Compare(ctx context.Context, member string) error {
	a.forget()
	return a.Outlier(ctx, member)
}

// Agree implements membership.Etcd.
func (a membersAccess) Agree(ctx context.Context, names ...string) error {
	return a.Among(names...).Agree(ctx)
}

// noteLost adds to an etcd whose data is lost of a member when that is replaced.
func (s *scope) noteLost(within time.Duration) {
	v, reached := s.verdicts[operatorv1alpha1.ConditionEtcdReady]
	if within == 0 || !reached || v.Complete() || s.ReadOnly() {
		return
	}
	// The time does not change from one reconcile to the next.
	v.Message += "; a new member takes its place at " + s.Now.Add(within).UTC().Truncate(time.Second).Format(time.RFC3339) + " (spec.etcd.replaceAfter)"
	s.verdicts[operatorv1alpha1.ConditionEtcdReady] = v
}

// besides returns the verdict of an upgrade beside which a member is replaced.
func (s *scope) besides(members, upgrade verdict.Verdict) verdict.Verdict {
	if members.After > 0 && (upgrade.After == 0 || members.After < upgrade.After) {
		upgrade = upgrade.In(members.After)
	}
	if members.Complete() || upgrade.Complete() {
		return upgrade
	}
	if upgrade.Message += "; besides, " + members.Message; upgrade.Err == nil {
		upgrade.Err = members.Err
	}
	return upgrade
}
