package backups

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/schedule"
)

// schedule creates the backup that is due, unless one by the schedule is not over. Of a registry
// that is being deleted it is the last one.
func (s *Stage) schedule(ctx context.Context, times schedule.Schedule) error {
	spec, status := s.Registry.Spec.Backup, s.Registry.Status.Backup
	if s.Deleting() != "" {
		return s.awaitLast(ctx)
	}
	if spec.Suspend || status.Lineage == "" || !s.Found.blocked.Complete() {
		return nil
	}
	due := backup.Due(times, *status, s.Now)
	if due.IsZero() || slices.ContainsFunc(s.Found.All, func(b *operatorv1alpha1.ClusterRegistryBackup) bool {
		return backup.Scheduled(b) && !b.Status.Phase.Ended() && (underWay(b) || b.DeletionTimestamp.IsZero())
	}) {
		return nil
	}
	for _, name := range backup.Names(s.Registry.Name, due, status.Lineage) {
		ofOther, err := false, s.Client.Create(ctx, s.newBackup(name, operatorv1alpha1.BackupScheduled))
		if apierrors.IsAlreadyExists(err) {
			ofOther, err = s.taken(ctx, name)
		}
		if err != nil {
			return fmt.Errorf("create ClusterRegistryBackup %s: %w", name, err)
		}
		if !ofOther {
			break
		}
	}
	at := metav1.NewTime(due.UTC())
	status.LastScheduleTime = &at
	return nil
}

// taken makes sure that a backup of the name that is due is one of this registry, which this
// operator has created before it was killed, or another leader. If it is not, that is a
// failure, and the next time in the schedule has another name. It reports whether that backup is
// of data from before etcd was restored or recovered.
func (s *Stage) taken(ctx context.Context, name string) (ofOther bool, err error) {
	other := &operatorv1alpha1.ClusterRegistryBackup{}
	if err := s.Live.Get(ctx, s.Named(name), other); err != nil {
		return false, err
	}
	if other.Spec.RegistryRef.Name != s.Registry.Name {
		s.Registry.Status.Backup.LastFailure = &operatorv1alpha1.BackupFailure{Time: metav1.NewTime(s.Now.Truncate(time.Second)), Name: name,
			Message: fmt.Sprintf("ClusterRegistryBackup %s is in the way: it is of ClusterRegistry %s; delete it", name, other.Spec.RegistryRef.Name)}
		return false, nil
	}
	return other.Status.Lineage != "" && other.Status.Lineage != s.Registry.Status.Backup.Lineage, nil
}
