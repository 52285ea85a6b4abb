package backup

import (
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestScaleBackedUp has etcd go down to one member: a backup is taken before that, and verified,
// beside the schedule. While the store is down, nothing is changed.
func TestScaleBackedUp(t *testing.T) {
	e := framework.New(t).WithOperator()
	s := startStore(t, e)
	registry := registryWith(e, s, 3, never)
	e.Install(registry)
	e.WaitReady(registry)
	addCluster(t, e, registry, "one")
	e.WaitCondition(registry, operatorv1alpha1.ConditionBackupReady, "True", operatorv1alpha1.ReasonBackedUp)
	s.scale(0)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Etcd.Replicas = 1 })
	e.WaitCondition(registry, operatorv1alpha1.ConditionProgressing, "True", operatorv1alpha1.ReasonProgressing, "nothing was changed: a backup comes first", s.host, "spec.backup.suspend")
	if registry.Status.Etcd.Ready != "3/3" {
		t.Errorf("etcd has %s members before there is a backup", registry.Status.Etcd.Ready)
	}
	s.scale(1)
	before := &operatorv1alpha1.ClusterRegistryBackup{}
	e.Eventually("a backup before the scale down", func(ctx context.Context) error { // another one, five minutes after the first one failed
		var list operatorv1alpha1.ClusterRegistryBackupList
		if err := e.Client.List(ctx, &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		for _, b := range list.Items {
			if b.Annotations[operatorv1alpha1.AnnotationBackupReason] == string(operatorv1alpha1.BackupScale) && b.Status.Phase == operatorv1alpha1.BackupCompleted {
				*before = b
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(list.Items))
	})
	checkCompleted(t, s, *before)
	e.WaitReady(registry)
	if registry.Status.Etcd.Ready != "1/1" {
		t.Errorf("etcd has %s members", registry.Status.Etcd.Ready)
	}
}
