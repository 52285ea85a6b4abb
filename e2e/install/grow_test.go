package install

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestCorrected says where images come from and errs, and then corrects it. It raises
// spec.etcd.storage.size: the volume grows, and etcd's quota follows. Then the StorageClass no
// longer allows it, which is said by name, and the size is taken back. In the end the registry
// is deleted with its data, of which nothing is left.
func TestCorrected(t *testing.T) {
	t.Parallel()
	e := framework.New(t).WithOperator()
	class := classOf(t, e)
	registry := independent(e, "grow")
	registry.Spec.Etcd.Storage = &operatorv1alpha1.Storage{Size: resource.MustParse("1Gi"), StorageClassName: class.Name}
	registry.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicyDelete
	registry.Spec.Images.Repository = "registry.invalid/wrong"
	e.Install(registry)
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonMembersNotReady,
		"pod grow-etcd-0", "registry.invalid/wrong/clusterregistry-helper:"+releaseOf(t, registry).Helper)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Images.Repository = "" })
	e.WaitReady(registry)
	checkImages(t, e)
	grow(t, e, registry, class)
	e.Remove(registry)
	checkLeft(t, e)
}

// grow is what TestCorrected does to the volume.
func grow(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, class *storagev1.StorageClass) {
	t.Helper()
	newest(t, e.Kubeconfig(registry)).Stdin(fmt.Sprintf(cluster, "kept")).Run("create", "-f", "-")
	size := func(to string) {
		e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Etcd.Storage.Size = resource.MustParse(to) })
	}
	size("2Gi")
	e.Eventually("the quota to follow the volume", func(ctx context.Context) error {
		set := &appsv1.StatefulSet{}
		if err := e.Get(ctx, "grow-etcd", set); err != nil {
			return err
		}
		if args := set.Spec.Template.Spec.Containers[0].Args; !strings.Contains(strings.Join(args, " "), "--quota-backend-bytes=1073741824") {
			return fmt.Errorf("it is %q", args)
		}
		return nil
	})
	e.Eventually("the status to say how large the volume is", func(ctx context.Context) error {
		claim := &corev1.PersistentVolumeClaim{}
		if err := e.Get(ctx, "data-grow-etcd-0", claim); err != nil {
			return err
		}
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		if has := claim.Status.Capacity[corev1.ResourceStorage]; has.String() != "2Gi" || registry.Status.Etcd.VolumeSize.String() != "2Gi" {
			return fmt.Errorf("the claim has %s, and the status says %s", has.String(), registry.Status.Etcd.VolumeSize)
		}
		return nil
	})
	e.WaitReady(registry)

	e.Update(class, func() { class.AllowVolumeExpansion = nil })
	size("4Gi")
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionTrue, operatorv1alpha1.ReasonVolumesDiffer, "data-grow-etcd-0 can't grow, since its StorageClass "+class.Name+" does not allow it", "set spec.etcd.storage.size to 2Gi")
	t.Log(etcdMessage(registry))
	size("2Gi")
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionTrue, operatorv1alpha1.ReasonReady)
	if out := newest(t, e.Kubeconfig(registry)).Run("get", "crc", "-o", "name"); out != "cluster.clusterregistry.k8s.io/kept\n" {
		t.Errorf("the clusters are %q", out)
	}
}

// classOf returns a StorageClass of the test's own, like the cluster's, whose volumes can grow.
func classOf(t *testing.T, e *framework.Env) *storagev1.StorageClass {
	t.Helper()
	var standard storagev1.StorageClass
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: "standard"}, &standard); err != nil {
		t.Fatal(err)
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}, Provisioner: standard.Provisioner, VolumeBindingMode: standard.VolumeBindingMode, AllowVolumeExpansion: new(true)}
	if err := e.Client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Client.Delete(context.Background(), class) })
	return class
}
