package backups

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/undecodable"
)

// atOnceTold bounds how many such backups are reported in one reconcile: anyone who may create
// backups may create many.
const atOnceTold = 10

// tellUndecodable has backups that can't be decoded say so, and those that can no longer.
// Whatever becomes of that, the registry is driven further.
func (s *Stage) tellUndecodable(ctx context.Context, unread []*operatorv1alpha1.ClusterRegistryBackup) {
	if s.PausedUntil() != "" {
		return
	}
	for _, b := range unread[:min(atOnceTold, len(unread))] {
		err := informers.Read(ctx, s.Live, client.ObjectKeyFromObject(b), &operatorv1alpha1.ClusterRegistryBackup{})
		if why := (*informers.UndecodableError)(nil); errors.As(err, &why) {
			err = undecodable.Describe(ctx, s.HostCluster, why, metav1.Condition{Type: operatorv1alpha1.BackupConditionDecodable, Status: metav1.ConditionFalse, Message: err.Error() + "; until then nothing is done about this backup, and no encryption key is removed"})
		}
		if client.IgnoreNotFound(err) != nil {
			logf.FromContext(ctx).Error(err, "report a ClusterRegistryBackup that can't be decoded; the operator will retry", "backup", b.Name)
		}
	}
	for _, b := range s.Found.All {
		if err := enter(ctx, s.Client, b, func(b *operatorv1alpha1.ClusterRegistryBackup) {
			meta.RemoveStatusCondition(&b.Status.Conditions, operatorv1alpha1.BackupConditionDecodable)
		}); client.IgnoreNotFound(err) != nil {
			logf.FromContext(ctx).Error(err, "report a ClusterRegistryBackup that can be decoded again; the operator will retry", "backup", b.Name)
		}
	}
}
