package backups

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/backup"
)

// Events about backups.
const (
	eventBackupCompleted   = "BackupCompleted"
	eventBackupFailed      = "BackupFailed"
	eventBackupDamaged     = "BackupDamaged"
	eventBackupVerified    = "BackupVerified"
	eventBackupNotVerified = "BackupNotVerified"
	eventBackupsPruned     = "BackupsPruned"
	eventBackupPruneFailed = "BackupPruneFailed"
	eventBackupContentLeft = "BackupContentLeft"
	actionBackup           = "Backup"
)

// holdContent has the objects of backups whose content goes with them wait for that.
func (s *Stage) holdContent(ctx context.Context) error {
	for _, b := range s.Found.All {
		held := controllerutil.ContainsFinalizer(b, operatorv1alpha1.FinalizerBackup)
		var err error
		switch {
		case b.DeletionTimestamp == nil && !held && b.Spec.DeletionPolicy == operatorv1alpha1.BackupDeletionPolicyDelete:
			err = finalize(ctx, s.Client, b, controllerutil.AddFinalizer)
		case b.DeletionTimestamp != nil && held && !backup.HasContent(b) && !underWay(b):
			err = finalize(ctx, s.Client, b, controllerutil.RemoveFinalizer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func underWay(b *operatorv1alpha1.ClusterRegistryBackup) bool {
	return b.Status.Phase == operatorv1alpha1.BackupSaving || b.Status.Phase == operatorv1alpha1.BackupVerifying
}

// runBackupTask takes the present task one step further.
func (s *Stage) runBackupTask(ctx context.Context) error {
	t := s.Found.task
	if t != nil && t.Step == backup.Save && !underWay(t.Object) {
		// It is known what is done before it is done: whoever comes next continues with it.
		if err := enter(ctx, s.Client, t.Object, func(b *operatorv1alpha1.ClusterRegistryBackup) {
			b.Status.Lineage = t.Lineage
			backup.Encrypted(b, s.KeyIDs())
			backup.Enter(b, operatorv1alpha1.BackupSaving, "", s.Now)
		}); err != nil {
			return err
		}
	}
	outcome, err := s.backupJob(ctx)
	if err != nil {
		return err
	}
	status := s.Registry.Status.Backup
	if t == nil {
		if s.Found.blocked.Complete() && !s.Found.Unread {
			status.StoreUnreachable = nil // no one tries to reach it
		}
		return nil
	}
	outcome = backup.Reach(status, *t, outcome, s.Now)
	switch t.Step {
	case backup.Prune:
		return s.pruned(ctx, *t, outcome)
	case backup.Delete:
		return s.contentDeleted(ctx, *t, outcome)
	}
	return s.advanceBackup(ctx, *t, outcome)
}

// advanceBackup brings a backup to where its Job leads.
func (s *Stage) advanceBackup(ctx context.Context, t backup.Task, outcome backup.Outcome) error {
	var advanced, again bool
	err := enter(ctx, s.Client, t.Object, func(b *operatorv1alpha1.ClusterRegistryBackup) {
		if t.Step == backup.Save {
			backup.Encrypted(b, s.KeyIDs()) // as they were changed meanwhile
		}
		advanced, again = backup.Advance(t, outcome, s.Registry.Spec.Backup.Verify, s.Now)
		if !advanced && t.Request == "" {
			backup.Enter(b, b.Status.Phase, outcome.Message, s.Now)
		}
	})
	if err != nil {
		return err
	}
	if again {
		return s.deleteBackupJob(ctx)
	}
	if !advanced {
		return nil
	}
	if t.Request != "" {
		s.tellVerified(t.Object)
		return nil
	}
	switch status := t.Object.Status; status.Phase {
	case operatorv1alpha1.BackupCompleted:
		s.Event(corev1.EventTypeNormal, eventBackupCompleted, actionBackup, "backup %s of revision %d is at %s", t.Object.Name, status.Revision, status.Location)
	case operatorv1alpha1.BackupDamaged:
		s.Event(corev1.EventTypeWarning, eventBackupDamaged, actionBackup, "backup %s can't be used: %s", t.Object.Name, status.Message)
	case operatorv1alpha1.BackupFailed:
		s.Event(corev1.EventTypeWarning, eventBackupFailed, actionBackup, "backup %s failed: %s", t.Object.Name, status.Message)
	}
	return nil
}

// tellVerified says in an event what came of another verification.
func (s *Stage) tellVerified(b *operatorv1alpha1.ClusterRegistryBackup) {
	switch status := b.Status; {
	case status.Phase == operatorv1alpha1.BackupDamaged:
		s.Event(corev1.EventTypeWarning, eventBackupDamaged, actionBackup, "backup %s can't be used: %s", b.Name, status.Message)
	case status.Message != "":
		s.Event(corev1.EventTypeWarning, eventBackupNotVerified, actionBackup, "backup %s: %s", b.Name, status.Message)
	default:
		s.Event(corev1.EventTypeNormal, eventBackupVerified, actionBackup, "backup %s was verified again", b.Name)
	}
}

// explainPending says of those that wait for what they do. What is too many fails.
func (s *Stage) explainPending(ctx context.Context) error {
	for _, b := range backup.TooMany(s.Found.All) {
		if err := enter(ctx, s.Client, b, func(b *operatorv1alpha1.ClusterRegistryBackup) {
			backup.Enter(b, operatorv1alpha1.BackupFailed, backup.TooManyMessage(), s.Now)
		}); err != nil {
			return err
		}
		s.Event(corev1.EventTypeWarning, eventBackupFailed, actionBackup, "backup %s failed: %s", b.Name, b.Status.Message)
	}
	for _, b := range s.Found.All {
		if b.Status.Phase != "" && b.Status.Phase != operatorv1alpha1.BackupPending || b.DeletionTimestamp != nil {
			continue
		}
		message := "Waiting for etcd to be complete"
		switch t := s.Found.task; {
		case !s.Found.blocked.Complete():
			message = s.Found.blocked.Message
		case t != nil && t.Object != b:
			message = fmt.Sprintf("Waiting for %s of backup %s", t.Step, t.Name)
		}
		if err := enter(ctx, s.Client, b, func(b *operatorv1alpha1.ClusterRegistryBackup) {
			backup.Enter(b, operatorv1alpha1.BackupPending, message, s.Now)
		}); err != nil {
			return err
		}
	}
	return nil
}
