package backups

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/operand"
)

// withoutBackups ends what was begun of the backups of a registry that has no store any more.
func (s *Stage) withoutBackups(ctx context.Context) error {
	s.Registry.Status.Backup = nil
	if s.ReadOnly() {
		return nil
	}
	return settle(ctx, s.Client, s.Found.All, fmt.Sprintf("ClusterRegistry %s has no spec.backup, which names the store", s.Registry.Name), s.Now, func(b *operatorv1alpha1.ClusterRegistryBackup, text string) {
		s.Event(corev1.EventTypeWarning, eventBackupContentLeft, actionBackup, "%s", text)
	})
}

// Settle ends the backups of a registry that is being deleted, or gone, and returns
// them. No backup in the store goes with it. What can't be read holds no deletion.
func (k *Kind) Settle(ctx context.Context, host operand.HostCluster, key client.ObjectKey, why string) ([]*operatorv1alpha1.ClusterRegistryBackup, error) {
	if err := k.Readable(ctx, host.Live, key.Namespace); err != nil {
		if errors.As(err, new(*unreadableError)) {
			return nil, nil
		}
		return nil, err
	}
	all, _, err := backupsOf(ctx, host.Client, key)
	if err != nil {
		return nil, err
	}
	return all, settle(ctx, host.Client, all, why, time.Now(), func(b *operatorv1alpha1.ClusterRegistryBackup, text string) {
		host.Events.Eventf(b, nil, corev1.EventTypeWarning, eventBackupContentLeft, actionBackup, "%s", text)
	})
}

// settle ends backups that can't be taken: what was begun, or scheduled, has failed; what a
// person asked for waits; and no deletion is held.
func settle(ctx context.Context, c client.Client, all []*operatorv1alpha1.ClusterRegistryBackup, why string, now time.Time, left func(*operatorv1alpha1.ClusterRegistryBackup, string)) error {
	for _, b := range all {
		if b.DeletionTimestamp != nil {
			if !controllerutil.ContainsFinalizer(b, operatorv1alpha1.FinalizerBackup) {
				continue
			}
			if backup.HasContent(b) {
				left(b, fmt.Sprintf("the content of backup %s is left at %s: %s", b.Name, b.Status.Location, why))
			}
			if err := finalize(ctx, c, b, controllerutil.RemoveFinalizer); client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		if b.Status.Phase.Ended() {
			continue
		}
		phase := operatorv1alpha1.BackupPending
		if underWay(b) || backup.Made(b) {
			phase = operatorv1alpha1.BackupFailed
		}
		if err := enter(ctx, c, b, func(b *operatorv1alpha1.ClusterRegistryBackup) { backup.Enter(b, phase, why, now) }); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
