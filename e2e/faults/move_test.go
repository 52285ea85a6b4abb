package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMatrixMove changes the StorageClass and the size of etcd's volumes while clients write.
// A class that does not exist is refused by its name; then all members move, one at a time, and
// no request fails. Their old volumes go when the new members serve, since no data outlives
// this registry.
func TestMatrixMove(t *testing.T) {
	e := framework.New(t).WithOperator()
	class := otherClass(t, e)
	registry := independent(e, 3)
	registry.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicyDelete
	registry.Spec.Etcd.Storage = &operatorv1alpha1.Storage{Size: resource.MustParse("1Gi"), StorageClassName: "standard"}
	e.Install(registry)
	e.WaitReady(registry)
	members, old := slices.Clone(registry.Status.Etcd.Members), map[string]string{}
	for _, member := range members {
		old[member.Name] = claimOf(t, e, member.Name).Spec.VolumeName
	}
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate)
	load.Settle(t)

	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Etcd.Storage.StorageClassName = class.Name + "-gone"
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionProgressing, metav1.ConditionFalse, operatorv1alpha1.ReasonMembersBlocked, "there is no StorageClass of that name", class.Name+"-gone")
	if registry.Status.Operation != nil || registry.Status.Etcd.Ready != "3/3" {
		t.Errorf("etcd is %s ready, and the operation %+v", registry.Status.Etcd.Ready, registry.Status.Operation)
	}

	load.Mark("to another class")
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Etcd.Storage.StorageClassName, spec.Etcd.Storage.Size = class.Name, resource.MustParse("2Gi")
	})
	for _, member := range members {
		replaced(e, registry, member)
	}
	load.Settle(t)
	report := load.Stop()
	t.Logf("three members moved to another StorageClass: %s", report)
	e.Unharmed(registry, report)
	for _, member := range members {
		claim := claimOf(t, e, member.Name)
		if size := claim.Status.Capacity[corev1.ResourceStorage]; *claim.Spec.StorageClassName != class.Name || size.String() != "2Gi" {
			t.Errorf("%s is of StorageClass %s and has %s", claim.Name, *claim.Spec.StorageClassName, size.String())
		}
		e.Eventually("the old volume of "+member.Name+" to be deleted", func(ctx context.Context) error {
			volume := &corev1.PersistentVolume{}
			err := e.Client.Get(ctx, client.ObjectKey{Name: old[member.Name]}, volume)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is %s with reclaim policy %s: %w", volume.Status.Phase, volume.Spec.PersistentVolumeReclaimPolicy, err)
		})
	}
}

// TestMatrixMoveSingle refuses to move a single member to another StorageClass, and says how to:
// with three members it moves, and is alone on the new class then. Its old volume stays, as all
// data does that outlives a registry.
func TestMatrixMoveSingle(t *testing.T) {
	e := framework.New(t).WithOperator()
	class := otherClass(t, e)
	registry := independent(e, 1)
	registry.Spec.Etcd.Storage = &operatorv1alpha1.Storage{Size: resource.MustParse("1Gi"), StorageClassName: "standard"}
	e.Install(registry)
	e.WaitReady(registry)
	first := registry.Status.Etcd.Members[0]
	old := claimOf(t, e, first.Name).Spec.VolumeName
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate)
	load.Settle(t)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Etcd.Storage.StorageClassName = class.Name })
	e.WaitCondition(registry, operatorv1alpha1.ConditionProgressing, metav1.ConditionFalse, operatorv1alpha1.ReasonMembersBlocked, first.Name+" can't be moved", "set spec.etcd.replicas to 3, and back to 1")
	load.Mark("to three members, and to another class")
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Etcd.Replicas = 3 })
	replaced(e, registry, first)
	load.Mark("to one member")
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Etcd.Replicas = 1 })
	e.Eventually("etcd to have one member", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		if registry.Status.Etcd.Ready != "1/1" || registry.Status.Operation != nil {
			return fmt.Errorf("etcd is %s ready, and the operation %+v", registry.Status.Etcd.Ready, registry.Status.Operation)
		}
		return nil
	})
	e.WaitReady(registry)
	load.Settle(t)
	report := load.Stop()
	t.Logf("a single member moved to another StorageClass: %s", report)
	e.Unharmed(registry, report)
	if claim := claimOf(t, e, first.Name); *claim.Spec.StorageClassName != class.Name {
		t.Errorf("%s is of StorageClass %s", claim.Name, *claim.Spec.StorageClassName)
	}
	retained(t, e, old)
}

// TestMatrixMoveByNodeSelector takes a node away from a member, whose local volume can't follow
// it: a new member takes its place on the node of another one, which is said. When it may run
// anywhere again, one of the two moves automatically, so that each member is on a node of its own.
// No request fails.
func TestMatrixMoveByNodeSelector(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := independent(e, 3)
	e.Install(registry)
	e.WaitReady(registry)
	moves := registry.Status.Etcd.Members[2]
	from := nodeOf(t, e, moves.Name)
	old := claimOf(t, e, moves.Name).Spec.VolumeName
	label := "e2e.clusterregistry.io/" + e.Namespace
	var others []string
	for _, member := range registry.Status.Etcd.Members[:2] {
		others = append(others, nodeOf(t, e, member.Name))
		labelNode(t, e, others[len(others)-1], label)
	}
	if slices.Contains(others, from) {
		t.Fatalf("members share a node from the beginning: %s and %q", from, others)
	}
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate)
	load.Settle(t)

	load.Mark("away from a node")
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Etcd.NodeSelector = map[string]string{label: "true"}
	})
	replaced(e, registry, moves)
	if on := nodeOf(t, e, moves.Name); !slices.Contains(others, on) {
		t.Errorf("%s is on node %s, and may run on %q", moves.Name, on, others)
	}
	retained(t, e, old)
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionTrue, operatorv1alpha1.ReasonMembersShareNode, moves.Name, "etcd loses its majority", "Add a node that etcd members may run on")

	load.Mark("to any node")
	volumes := map[string]string{}
	for _, member := range registry.Status.Etcd.Members {
		volumes[member.Name] = claimOf(t, e, member.Name).Spec.VolumeName
	}
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Etcd.NodeSelector = nil })
	// The pods are recreated one by one, and one of those that share a node finds it taken.
	e.Eventually("each member to be on a node of its own", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		on := map[string]bool{}
		for _, member := range registry.Status.Etcd.Members {
			pod := &corev1.Pod{}
			if err := e.Get(ctx, member.Name, pod); err != nil {
				return err
			}
			on[pod.Spec.NodeName] = true
		}
		if delete(on, ""); len(on) != 3 {
			return fmt.Errorf("3 members are on %d nodes", len(on))
		}
		return nil
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionTrue, operatorv1alpha1.ReasonReady)
	for _, member := range registry.Status.Etcd.Members {
		if before := volumes[member.Name]; before != claimOf(t, e, member.Name).Spec.VolumeName {
			retained(t, e, before)
		}
	}
	load.Settle(t)
	report := load.Stop()
	t.Logf("a member moved away from a node and back: %s", report)
	e.Unharmed(registry, report)
}

// otherClass returns a StorageClass of the test's own, like the cluster's.
func otherClass(t *testing.T, e *framework.Env) *storagev1.StorageClass {
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

// claimOf returns the claim of a member.
func claimOf(t *testing.T, e *framework.Env, member string) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	if err := e.Get(t.Context(), "data-"+member, claim); err != nil {
		t.Fatal(err)
	}
	return claim
}

// nodeOf returns the name of the node that a member is on.
func nodeOf(t *testing.T, e *framework.Env, member string) string {
	t.Helper()
	pod := &corev1.Pod{}
	if err := e.Get(t.Context(), member, pod); err != nil {
		t.Fatal(err)
	}
	return pod.Spec.NodeName
}

// labelNode labels a node for the time of the test.
func labelNode(t *testing.T, e *framework.Env, name, label string) {
	t.Helper()
	patch := func(ctx context.Context, value string) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return e.Client.Patch(ctx, node, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, label, value)))
	}
	if err := patch(t.Context(), `"true"`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = patch(context.Background(), "null") })
}

// retained holds an old volume to being kept, and deletes it: no one else will.
func retained(t *testing.T, e *framework.Env, name string) {
	t.Helper()
	volume := &corev1.PersistentVolume{}
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: name}, volume); err != nil || volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("the old volume %s has reclaim policy %s: %v", name, volume.Spec.PersistentVolumeReclaimPolicy, err)
	}
	_ = e.Client.Delete(context.Background(), volume)
}
