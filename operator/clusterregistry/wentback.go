package clusterregistry

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
	"github.com/clusterregistry/operator/operator/job"
	"github.com/clusterregistry/operator/operator/operation/recovery"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/verdict"
)

// wentBack returns how etcd went back, nil when it did not or a person has decided.
func (s *scope) wentBack() *etcd.WentBack {
	if s.Identity.Record == nil || s.Recovering() != nil {
		return nil
	}
	return s.Identity.Record.WentBack
}

// decide says in status.recovery what each side of an etcd has that went back, and does what a
// person has approved: with a member that serves, etcd continues with what it has; with another
// copy, it is recovered as from a lost quorum. It comes before the pass is read-only.
func (r *Reconciler) decide(ctx context.Context, s *scope) {
	back := s.wentBack()
	if back == nil || s.Members.Reason != operatorv1alpha1.ReasonWentBack {
		return
	}
	if !s.ReadOnly() {
		// What it would save lacks what is missing, and what it would remove may have that.
		if err := job.Delete(ctx, s.Objects, contract.BackupSuffix); err != nil {
			s.Members.Err = fmt.Errorf("stop the backup that is under way: %w", err)
			return
		}
	}
	members, err := r.members(s).Change().Left(ctx)
	if err != nil {
		s.Members.Err = fmt.Errorf("find out which member has what etcd lacks: %w", err)
		return
	}
	status := &s.Registry.Status
	before := status.Recovery
	known := before != nil && before.ID == back.ID // else no one can have approved it
	if !known {
		before = &operatorv1alpha1.RecoveryStatus{ID: back.ID, LostTime: metav1.NewTime(back.Time)}
	}
	for i := range members {
		if s.serves(members[i].Name) {
			members[i].Revision, members[i].Message = back.To, "it serves clients, and lacks what etcd went back by; it may have got further since"
		}
	}
	found := assess(before, members, s.newestVerified(), back.From)
	status.Recovery = found
	asked := s.Registry.Spec.Recovery
	if !known || asked == nil || asked.ApprovedFor != found.ID {
		return
	}
	if asked.From == operatorv1alpha1.RecoverFromMember && s.serves(asked.Name) {
		s.Members.Verdict = r.accept(ctx, s, *asked)
		return
	}
	switch held := r.approve(ctx, s, found); {
	case s.Recovering() != nil:
		found.Phase = s.Recovering().Phase
		s.Members.Verdict = verdict.Waiting(operatorv1alpha1.ReasonRecovering, "etcd, which went back, continues with the data of %s: all servers and etcd members are stopped first", recovery.Copy(s.Recovering())).In(verdict.AtOnce)
		found.Message = s.Members.Message
	case !held.Complete():
		found.Message = held.Message
		s.Members.Message += "; spec.recovery does nothing yet: " + held.Message
	}
}

// serves reports whether a member is one of those that serve.
func (s *scope) serves(member string) bool {
	return slices.ContainsFunc(s.Members.State.Members, func(m etcd.Member) bool { return m.Name == member && m.Err == nil })
}

// accept has etcd continue with what it has, where no more is lost than a person accepts.
func (r *Reconciler) accept(ctx context.Context, s *scope, asked operatorv1alpha1.Recovery) verdict.Verdict {
	status, back := &s.Registry.Status, s.wentBack()
	held := func(why string) verdict.Verdict {
		status.Recovery.Message = why
		v := s.Members.Verdict
		v.Message += "; spec.recovery does nothing yet: " + why
		return v
	}
	_, until := s.Halted()
	if s.ReadOnly() {
		until = s.ReadOnlyUntil()
	}
	if until != "" {
		return held("nothing is decided until " + until)
	}
	if err := (restore.Approval{Recovery: asked, Lost: *status.Recovery, Joining: s.Identity.Record.Joining}).Refuse(); err != nil {
		return held(err.Error())
	}
	if err := s.Identity.Write(ctx, s.Identity.Record.Accept(s.Members.State.Newest(), s.Now)); err != nil {
		return verdict.Failed(fmt.Errorf("record that etcd continues with what it has: %w", err))
	}
	r.revisions.Forget(client.ObjectKeyFromObject(s.Registry).String())
	status.Recovery = nil
	s.Event(corev1.EventTypeNormal, operatorv1alpha1.ReasonWentBack, operatorv1alpha1.ConditionEtcdReady, "etcd continues with what it has, as spec.recovery approves: what it had acknowledged between revisions %d and %d is given up", back.To, back.From)
	return verdict.Waiting(operatorv1alpha1.ReasonWentBack, "etcd continues with what it has, as spec.recovery approves").In(verdict.AtOnce)
}
