package restoring

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation/recovery"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/store"
	"github.com/clusterregistry/operator/operator/verdict"
)

// ObserveRecovery has the backup looked up that a recovery is approved with, before anything
// is stopped: what can't be restored is refused while all is as it was.
func (s *Stage) ObserveRecovery(ctx context.Context) Found {
	asked, lost := s.Registry.Spec.Recovery, s.Before.Recovery
	due := asked != nil && lost != nil && s.Identity.Record != nil && asked.From == operatorv1alpha1.RecoverFromBackup && asked.ApprovedFor == lost.ID
	if !due || s.Recovering().Of(*asked) {
		return s.Found
	}
	s.Found.Recovery.Verdict = s.backupOf(ctx, restore.Approval{Recovery: *asked, Lost: *lost})
	return s.Found
}

// backupOf finds out where the approved backup is. It is done when it is to be looked up.
func (s *Stage) backupOf(ctx context.Context, approval restore.Approval) verdict.Verdict {
	b := &operatorv1alpha1.ClusterRegistryBackup{}
	err := s.Live.Get(ctx, s.Named(approval.Name), b)
	if client.IgnoreNotFound(err) != nil {
		return verdict.Failed(fmt.Errorf("read ClusterRegistryBackup %s: %w", approval.Name, err))
	}
	if err != nil {
		return recovery.Held("spec.recovery.name is %s, and there is no ClusterRegistryBackup of that name in namespace %s: name one of the backups that kubectl registry backup list prints", approval.Name, s.Registry.Namespace)
	}
	lineage := s.Identity.Record.Lineage
	if recovered := s.Recovering(); recovered != nil {
		lineage = recovered.Before
	}
	if err := approval.RefuseBackup(b, lineage); err != nil {
		return recovery.Held("%s", err)
	}
	if s.Registry.Spec.Backup == nil {
		return recovery.Held("spec.backup, which says in which store ClusterRegistryBackup %s is, is not set: set it first", approval.Name)
	}
	source, v := s.referred(ctx, operatorv1alpha1.BackupReference{Name: approval.Name}, "set spec.recovery.name to ")
	if !v.Complete() {
		v.Reason = operatorv1alpha1.ReasonQuorumLost
		return v
	}
	if _, v := store.Needs(ctx, s.Objects, source.Store, "spec.backup.store", "no backup can be restored"); !v.Complete() {
		return recovery.Held("%s", v.Message)
	}
	s.Found.source, s.Found.asked = &source, true
	return done
}

// foundBackup has the recovery restore the backup that was looked up. What is written under
// other keys than the servers have is refused before.
func (s *Stage) foundBackup(report contract.BackupReport) verdict.Verdict {
	if err := restore.RefuseRelease(report.Name, report.Release, s.Running()); err != nil {
		return recovery.Held("%s", err)
	}
	source := s.Found.source
	s.Found.Recovery.Restored = &etcd.Restored{From: "recovery " + s.Before.Recovery.ID, Backup: source.backup, Store: &source.Store, Lineage: source.Lineage, Report: report}
	return done
}
