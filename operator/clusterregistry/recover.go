package clusterregistry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/recovery"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/store"
	"github.com/clusterregistry/operator/operator/verdict"
)

// stopped is what does not run while a lost quorum is recovered: no server serves what etcd is
// about to give up, and none writes before the new etcd is recorded.
func (s *scope) stopped() render.Stopped {
	recovered := s.Recovering()
	return render.Stopped{Servers: recovered != nil, Members: recovered != nil && recovered.Phase == operatorv1alpha1.RecoveryStopping}
}

// approve begins the recovery that spec.recovery approves of a loss that was found, or says
// why it does not. It is done when it has begun, or nothing is approved.
func (r *Reconciler) approve(ctx context.Context, s *scope, found *operatorv1alpha1.RecoveryStatus) verdict.Verdict {
	asked := s.Registry.Spec.Recovery
	if asked == nil || s.Recovering() != nil && asked.ApprovedFor != found.ID {
		return done
	}
	approval := restore.Approval{Recovery: *asked, Lost: *found, Joining: s.Identity.Record.Joining}
	backup, v := s.approved(approval)
	halted, until := s.Halted()
	switch {
	case !v.Complete():
		return v
	case s.ReadOnly():
		return recoveryHeld("nothing is recovered until %s", s.ReadOnlyUntil())
	case halted != "":
		return recoveryHeld("nothing is recovered until %s", until)
	case s.Recovering().Of(*asked):
		return s.rebound(ctx, approval)
	}
	if v := recovery.Retain(ctx, s.Objects, s.Identity, approval.Recovery); !v.Complete() {
		return v
	}
	if err := r.keyChange(s).ReadClear(ctx); err != nil {
		return verdict.Failed(fmt.Errorf("have the servers read what is stored in clear: %w", err))
	}
	if err := recovery.Begin(ctx, s.Objects, s.Identity, approval, backup); err != nil {
		return verdict.Failed(fmt.Errorf("record the recovery of etcd: %w", err))
	}
	// What was found to be stored may not be what the copy has.
	r.notes.Forget(s.Registry.UID)
	r.keyWalks.Forget(s.Registry.UID)
	s.Event(corev1.EventTypeNormal, operatorv1alpha1.ReasonRecovering, operatorv1alpha1.ConditionEtcdReady, "the recovery from the lost quorum %s is approved, with the data of %s: all servers and etcd members are stopped first", found.ID, recovery.Copy(s.Recovering()))
	return done
}

// approved is done when what is approved can be done. Of a backup, it returns what is to be
// restored.
func (s *scope) approved(approval restore.Approval) (*etcd.Restored, verdict.Verdict) {
	if err := approval.Refuse(); err != nil {
		return nil, recoveryHeld("%s", err)
	}
	if approval.From != operatorv1alpha1.RecoverFromBackup || s.Recovering().Of(approval.Recovery) {
		return nil, done
	}
	if v := s.restore.recovery.verdict; !v.Complete() {
		return nil, v
	}
	if s.restore.recovery.restored == nil {
		return nil, recoveryHeld("the backup is looked up next").In(verdict.AtOnce)
	}
	return s.restore.recovery.restored, done
}

// rebound records how much may be lost, where that was changed while the recovery is under way.
func (s *scope) rebound(ctx context.Context, approval restore.Approval) verdict.Verdict {
	recovered := s.Recovering()
	if least := approval.Least(); recovered.From == operatorv1alpha1.RecoverFromMember && least != recovered.Revision {
		if err := recovery.Bound(ctx, s.Identity, least); err != nil {
			return verdict.Failed(fmt.Errorf("record how much may be lost: %w", err))
		}
	}
	return done
}

// recoveryHeld is the verdict on an approval that does nothing as it is.
func recoveryHeld(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonQuorumLost, format, args...).In(verdict.Backstop)
}

// recover takes the recovery that is under way one step further.
func (r *Reconciler) recover(ctx context.Context, s *scope) verdict.Verdict {
	status := &s.Registry.Status
	if status.Recovery == nil {
		recovered := s.Recovering() // of an earlier ClusterRegistry of the name
		status.Recovery = &operatorv1alpha1.RecoveryStatus{ID: recovered.ID, LostTime: metav1.NewTime(recovered.LostTime), LastRevision: recovered.LastRevision}
		for _, name := range slices.Sorted(maps.Keys(recovered.Members)) {
			status.Recovery.Members = append(status.Recovery.Members, operatorv1alpha1.RecoveryMember{Name: name, Message: "what is left of it is not known any more"})
		}
	}
	if operation.ChangesMembers(status.Operation) {
		operation.End(s.Registry) // it was about members that are no more
	}
	held := r.approve(ctx, s, status.Recovery)
	if held.Err != nil {
		return held
	}
	step := &recovery.Recovery{Objects: s.Objects, Identity: s.Identity, State: s.Members.State, Members: s.Members.Verdict, Rolling: s.Members.Rolling}
	v := step.Step(ctx)
	recovered := s.Recovering()
	if recovered == nil {
		status.Recovery = nil
		s.reportRecovered()
		return v
	}
	status.Recovery.Phase, status.Recovery.Message = recovered.Phase, v.Message
	if !held.Complete() {
		status.Recovery.Message += "; spec.recovery was changed, and that does nothing: " + held.Message
	}
	s.verdicts[operatorv1alpha1.ConditionEtcdReady] = verdict.Waiting(operatorv1alpha1.ReasonRecovering, "%s", status.Recovery.Message).In(v.After)
	return v
}

// reportRecovered writes to the status how the last lost quorum was recovered from.
func (s *scope) reportRecovered() {
	if s.Identity.Record == nil || s.Identity.Record.Recovered == nil || s.Identity.Record.Recovered.Pending() {
		return
	}
	recovered := s.Identity.Record.Recovered
	s.Registry.Status.Recovered = &operatorv1alpha1.RecoveredStatus{
		ID: recovered.ID, From: recovered.From, Name: recovered.Name, LostTime: metav1.NewTime(recovered.LostTime), LastRevision: recovered.LastRevision,
		Revision: recovered.Ended, Lineage: recovered.Lineage, CompletionTime: metav1.NewTime(*recovered.Completed),
	}
}

// recoveryLookUp is what is known of the backup that a recovery is approved with.
type recoveryLookUp struct {
	// verdict says why it can't be used, or is not known yet.
	verdict verdict.Verdict
	// restored is what is to be restored, nil when it is not known.
	restored *etcd.Restored
	// asked is true where one is approved, and looked up.
	asked bool
}

// observeRecovery has the backup looked up that a recovery is approved with, before anything
// is stopped: what can't be restored is refused while all is as it was.
func (r *Reconciler) observeRecovery(ctx context.Context, s *scope) {
	asked, lost := s.Registry.Spec.Recovery, s.Before.Recovery
	due := asked != nil && lost != nil && s.Identity.Record != nil && asked.From == operatorv1alpha1.RecoverFromBackup && asked.ApprovedFor == lost.ID
	if !due || s.Recovering().Of(*asked) {
		return
	}
	s.restore.recovery.verdict = r.backupOf(ctx, s, restore.Approval{Recovery: *asked, Lost: *lost})
}

// backupOf finds out where the approved backup is. It is done when it is to be looked up.
func (r *Reconciler) backupOf(ctx context.Context, s *scope, approval restore.Approval) verdict.Verdict {
	b := &operatorv1alpha1.ClusterRegistryBackup{}
	err := s.Live.Get(ctx, s.Named(approval.Name), b)
	if client.IgnoreNotFound(err) != nil {
		return verdict.Failed(fmt.Errorf("read ClusterRegistryBackup %s: %w", approval.Name, err))
	}
	if err != nil {
		return recoveryHeld("spec.recovery.name is %s, and there is no ClusterRegistryBackup of that name in namespace %s: name one of the backups that kubectl registry backup list prints", approval.Name, s.Registry.Namespace)
	}
	lineage := s.Identity.Record.Lineage
	if recovered := s.Recovering(); recovered != nil {
		lineage = recovered.Before
	}
	if err := approval.RefuseBackup(b, lineage); err != nil {
		return recoveryHeld("%s", err)
	}
	if s.Registry.Spec.Backup == nil {
		return recoveryHeld("spec.backup, which says in which store ClusterRegistryBackup %s is, is not set: set it first", approval.Name)
	}
	source, v := r.referred(ctx, s, operatorv1alpha1.BackupReference{Name: approval.Name}, "set spec.recovery.name to ")
	if !v.Complete() {
		v.Reason = operatorv1alpha1.ReasonQuorumLost
		return v
	}
	if _, v := store.Needs(ctx, s.Objects, source.Store, "spec.backup.store", "no backup can be restored"); !v.Complete() {
		return recoveryHeld("%s", v.Message)
	}
	s.restore.source, s.restore.recovery.asked = &source, true
	return done
}

// foundBackup has the recovery restore the backup that was looked up. What is written under
// other keys than the servers have is refused before.
func (s *scope) foundBackup(report contract.BackupReport) verdict.Verdict {
	if err := restore.RefuseRelease(report.Name, report.Release, s.Running()); err != nil {
		return recoveryHeld("%s", err)
	}
	source := s.restore.source
	s.restore.recovery.restored = &etcd.Restored{From: "recovery " + s.Before.Recovery.ID, Backup: source.backup, Store: &source.Store, Lineage: source.Lineage, Report: report}
	return done
}
