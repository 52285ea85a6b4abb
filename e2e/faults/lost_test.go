package faults

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// replaced waits for a new member in the place of one, with which the registry is complete.
func replaced(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, lost operatorv1alpha1.EtcdMember) {
	e.Eventually("a new member in the place of "+lost.Name, func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		for _, member := range registry.Status.Etcd.Members {
			if member.Name == lost.Name && member.ID != lost.ID && member.Ready && registry.Status.Operation == nil {
				return nil
			}
		}
		return fmt.Errorf("etcd is %+v, and the operation %+v", registry.Status.Etcd, registry.Status.Operation)
	})
	e.WaitReady(registry)
}

// noted waits until a member counts as lost. The condition says so of its pod alone; the time is
// written by a reconcile that has observed all members, which may be a later one.
func noted(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, lost operatorv1alpha1.EtcdMember) {
	e.Eventually(lost.Name+" to be noted as lost", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		for _, member := range registry.Status.Etcd.Members {
			if member.Name == lost.Name && member.ID == lost.ID && member.LostTime != nil {
				return nil
			}
		}
		return fmt.Errorf("etcd is %+v, and the operation %+v", registry.Status.Etcd, registry.Status.Operation)
	})
}

// TestDataLost empties the volumes of a node. The member there is not replaced where the spec
// says so, until a person names it; its old volume is kept.
func TestDataLost(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := independent(e, 3)
	registry.Spec.Etcd.ReplaceAfter = &metav1.Duration{}
	e.Install(registry)
	e.WaitReady(registry)
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate)
	load.Settle(t)
	report := load.Stop()

	lost := registry.Status.Etcd.Members[1]
	var pod corev1.Pod
	if err := e.Get(t.Context(), lost.Name, &pod); err != nil {
		t.Fatal(err)
	}
	var claim corev1.PersistentVolumeClaim
	if err := e.Get(t.Context(), "data-"+lost.Name, &claim); err != nil {
		t.Fatal(err)
	}
	e.Node("stop", pod.Spec.NodeName)
	framework.Cluster(t, "node", "wipe", pod.Spec.NodeName)
	framework.Cluster(t, "node", "start", pod.Spec.NodeName)
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonDataLost, lost.Name, "has no data, but cluster "+registry.Status.Etcd.ClusterID)
	noted(e, registry, lost)
	if registry.Status.Operation != nil {
		t.Errorf("it is replaced: %+v", registry.Status.Operation)
	}
	e.Update(registry, func() {
		registry.Annotations = map[string]string{operatorv1alpha1.AnnotationReplaceMember: lost.ID}
	})
	replaced(e, registry, lost)
	volume := &corev1.PersistentVolume{}
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil || volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("the old volume is %s: %v", volume.Spec.PersistentVolumeReclaimPolicy, err)
	}
	_ = e.Client.Delete(context.Background(), volume)
	e.Compare(registry, report)
}

// TestScale has a registry with one member of etcd get three while clients write, and one
// again. No request fails, and nothing of the members that went is left.
func TestScale(t *testing.T) {
	t.Parallel()
	e := framework.New(t).WithOperator()
	registry := independent(e, 1)
	e.Install(registry)
	e.WaitReady(registry)
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate, framework.Pending(2*rate))
	load.Settle(t)
	for _, members := range []int32{3, 1} {
		load.Mark(fmt.Sprintf("to %d members", members))
		e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Etcd.Replicas = members })
		e.Eventually(fmt.Sprintf("etcd to have %d members", members), func(ctx context.Context) error {
			if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
				return err
			}
			if want := fmt.Sprintf("%d/%d", members, members); registry.Status.Etcd.Ready != want || registry.Status.Operation != nil {
				return fmt.Errorf("etcd is %s ready, and the operation %+v", registry.Status.Etcd.Ready, registry.Status.Operation)
			}
			return nil
		})
		e.WaitReady(registry)
		load.Settle(t)
	}
	report := load.Stop()
	t.Logf("from one member to three and back: %s", report)
	for _, failure := range report.Failed {
		t.Error(failure)
	}
	e.Compare(registry, report)
	for _, name := range []string{"data-" + registry.Name + "-etcd-1", "data-" + registry.Name + "-etcd-2"} {
		if err := e.Get(t.Context(), name, &corev1.PersistentVolumeClaim{}); !apierrors.IsNotFound(err) {
			t.Errorf("claim %s of a member that was removed is there, or can't be read: %v", name, err)
		}
	}
}
