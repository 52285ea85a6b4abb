package backups

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/job"
	"github.com/clusterregistry/operator/operator/operand"
)

// pruned deletes the objects of backups that are no longer in the store. What failed is done
// again, after the next backup or an hour, whichever is first.
func (s *Stage) pruned(ctx context.Context, t backup.Task, outcome backup.Outcome) error {
	status := s.Registry.Status.Backup
	switch outcome.State {
	case backup.Running:
		return nil
	case backup.Lost:
		return s.deleteBackupJob(ctx)
	}
	removed, failure := outcome.Removed()
	for _, b := range s.Found.All {
		if backup.HasContent(b) && b.Status.Lineage == t.Lineage && slices.Contains(removed, b.Name) {
			if err := s.deleteBackup(ctx, b); err != nil {
				return err
			}
		}
	}
	if len(removed) > 0 {
		s.Event(corev1.EventTypeNormal, eventBackupsPruned, actionBackup, "%d backups were removed by spec.backup.retention: %s", len(removed), operand.Names(references(removed)))
	}
	status.Pruned = t.Name
	if failure == "" {
		status.PruneFailure = nil
		return nil
	}
	s.Event(corev1.EventTypeWarning, eventBackupPruneFailed, actionBackup, "old backups were not removed, and the operator will retry: %s", failure)
	backup.NotRemoved(status, failure, s.Now)
	return nil
}

func references(names []string) []operatorv1alpha1.ObjectReference {
	var out []operatorv1alpha1.ObjectReference
	for _, name := range names {
		out = append(out, operatorv1alpha1.ObjectReference{Kind: "ClusterRegistryBackup", Name: name})
	}
	return out
}

// contentDeleted lets the object of a backup go that is deleted in the store, or that the
// store does not delete in time.
func (s *Stage) contentDeleted(ctx context.Context, t backup.Task, outcome backup.Outcome) error {
	switch {
	case outcome.State == backup.Running:
		return nil
	case outcome.State == backup.Failed && s.Now.Sub(t.Object.DeletionTimestamp.Time) > backup.LetGo:
		s.Event(corev1.EventTypeWarning, eventBackupContentLeft, actionBackup, "the content of backup %s is left at %s: %s", t.Object.Name, t.Object.Status.Location, outcome.Message)
	case outcome.State != backup.Succeeded:
		return s.deleteBackupJob(ctx)
	}
	return finalize(ctx, s.Client, t.Object, controllerutil.RemoveFinalizer)
}

// dropBackups deletes objects that have served their purpose. What the status has to have of
// them was written before.
func (s *Stage) dropBackups(ctx context.Context) error {
	if s.Before.Backup == nil {
		return nil
	}
	for _, b := range backup.Obsolete(s.Found.All, *s.Before.Backup) {
		if err := s.deleteBackup(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stage) deleteBackupJob(ctx context.Context) error {
	return job.Delete(ctx, s.Objects, contract.BackupSuffix)
}
