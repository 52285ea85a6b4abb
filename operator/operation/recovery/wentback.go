package recovery

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/job"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/verdict"
)

// WentBack returns how etcd went back, nil when it did not or a person has decided.
func WentBack(p pass.Pass) *etcd.WentBack {
	switch {
	case external(p):
		return identity.External(&p.Registry.Status).WentBack
	case p.Identity.Record == nil || p.Recovering() != nil:
		return nil
	}
	return p.Identity.Record.WentBack
}

// Decide says in status.recovery what each side of an etcd has that went back, and does what a
// person has approved: with a member that serves, etcd continues with what it has; with another
// copy, it is recovered as from a lost quorum. It comes before the pass is read-only, and returns
// what is said of etcd.
func (d *Drive) Decide(ctx context.Context) verdict.Verdict {
	if external(d.Pass) {
		d.decideExternal(ctx)
	} else {
		d.decide(ctx)
	}
	return d.Members.Verdict
}

func (d *Drive) decide(ctx context.Context) {
	back := WentBack(d.Pass)
	if back == nil || d.Members.Reason != operatorv1alpha1.ReasonWentBack {
		return
	}
	if !d.ReadOnly() {
		// What it would save lacks what is missing, and what it would remove may have that.
		if err := job.Delete(ctx, d.Objects, contract.BackupSuffix); err != nil {
			d.Members.Err = fmt.Errorf("stop the backup that is under way: %w", err)
			return
		}
	}
	members, err := d.Changes.Change().Left(ctx)
	if err != nil {
		d.Members.Err = fmt.Errorf("find out which member has what etcd lacks: %w", err)
		return
	}
	status := &d.Registry.Status
	before := status.Recovery
	known := before != nil && before.ID == back.ID // else no one can have approved it
	if !known {
		before = &operatorv1alpha1.RecoveryStatus{ID: back.ID, LostTime: metav1.NewTime(back.Time)}
	}
	for i := range members {
		if d.serves(members[i].Name) {
			members[i].Revision, members[i].Message = back.To, "it serves clients, and lacks what etcd went back by; it may have got further since"
		}
	}
	found := assess(before, members, d.newestVerified(), back.From)
	status.Recovery = found
	asked := d.Registry.Spec.Recovery
	if !known || asked == nil || asked.ApprovedFor != found.ID {
		return
	}
	if asked.From == operatorv1alpha1.RecoverFromMember && d.serves(asked.Name) {
		d.Members.Verdict = d.accept(ctx, *asked)
		return
	}
	switch held := d.Approve(ctx, found); {
	case d.Recovering() != nil:
		found.Phase = d.Recovering().Phase
		d.Members.Verdict = verdict.Waiting(operatorv1alpha1.ReasonRecovering, "etcd, which went back, continues with the data of %s: all servers and etcd members are stopped first", Copy(d.Recovering())).In(verdict.AtOnce)
		found.Message = d.Members.Message
	case !held.Complete():
		found.Message = held.Message
		d.Members.Message += "; spec.recovery does nothing yet: " + held.Message
	}
}

// serves reports whether a member is one of those that serve.
func (d *Drive) serves(member string) bool {
	return slices.ContainsFunc(d.Members.State.Members, func(m etcd.Member) bool { return m.Name == member && m.Err == nil })
}

// accept has etcd continue with what it has, where no more is lost than a person accepts.
func (d *Drive) accept(ctx context.Context, asked operatorv1alpha1.Recovery) verdict.Verdict {
	status, back := &d.Registry.Status, WentBack(d.Pass)
	held := func(why string) verdict.Verdict {
		status.Recovery.Message = why
		v := d.Members.Verdict
		v.Message += "; spec.recovery does nothing yet: " + why
		return v
	}
	_, until := d.Halted()
	if d.ReadOnly() {
		until = d.ReadOnlyUntil()
	}
	if until != "" {
		return held("nothing is decided until " + until)
	}
	if err := (restore.Approval{Recovery: asked, Lost: *status.Recovery, Joining: d.record().Joining}).Refuse(); err != nil {
		return held(err.Error())
	}
	if !d.serves(asked.Name) {
		return held(fmt.Sprintf("spec.recovery.name is %s, which does not serve: name a member that does", asked.Name))
	}
	if err := d.continues(ctx); err != nil {
		return verdict.Failed(err)
	}
	d.Revisions.Forget(client.ObjectKeyFromObject(d.Registry).String())
	d.Event(corev1.EventTypeNormal, operatorv1alpha1.ReasonWentBack, operatorv1alpha1.ConditionEtcdReady, "etcd continues with what it has, as spec.recovery approves: what it had acknowledged between revisions %d and %d is given up", back.To, back.From)
	return verdict.Waiting(operatorv1alpha1.ReasonWentBack, "etcd continues with what it has, as spec.recovery approves").In(verdict.AtOnce)
}
