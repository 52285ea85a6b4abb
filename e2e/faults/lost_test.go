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

// TestMatrixDataLost empties the volumes of a node, as a computer does that is installed again.
// In "make test", TestRecovery empties those of members.
func TestMatrixDataLost(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := independent(e, 3)
	registry.Spec.Etcd.ReplaceAfter = &metav1.Duration{}
	e.Install(registry)
	e.WaitReady(registry)
	replacedByName(t, e, registry, func(lost operatorv1alpha1.EtcdMember) {
		node := nodeOf(t, e, lost.Name)
		e.Node("stop", node)
		framework.Cluster(t, "node", "wipe", node)
		framework.Cluster(t, "node", "start", node)
	})
}

// replacedByName has a member lose its data. It is not replaced where the spec says so, until
// a person names it; its old volume is kept, and all that was acknowledged is there.
func replacedByName(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, lose func(operatorv1alpha1.EtcdMember)) {
	t.Helper()
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate, framework.Pending(2*rate))
	load.Settle(t)
	report := load.Stop()

	lost := registry.Status.Etcd.Members[1]
	old := claimOf(t, e, lost.Name).Spec.VolumeName
	lose(lost)
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonDataLost, lost.Name, "has no data, but cluster "+registry.Status.Etcd.ClusterID)
	noted(e, registry, lost)
	if registry.Status.Operation != nil {
		t.Errorf("it is replaced: %+v", registry.Status.Operation)
	}
	e.Update(registry, func() {
		registry.Annotations = map[string]string{operatorv1alpha1.AnnotationReplaceMember: lost.ID}
	})
	replaced(e, registry, lost)
	retained(t, e, old)
	e.Compare(registry, report)
}

// TestScaleAndRotation has a registry with one etcd member get three while clients write, then
// renews all of its certificates, and has it get one member again. No request fails, and nothing
// of the members that went is left.
func TestScaleAndRotation(t *testing.T) {
	t.Parallel()
	e := framework.New(t).WithOperator()
	registry := independent(e, 1)
	e.Install(registry)
	e.WaitReady(registry)
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate, framework.Pending(2*rate))
	load.Settle(t)
	phase := func(name string, does func()) {
		load.Mark(name)
		does()
		load.Settle(t)
	}
	phase("to 3 members", func() { scale(e, registry, 3) })
	phase("all leaves are renewed", func() { rotation(t, e, registry) })
	phase("to 1 member", func() { scale(e, registry, 1) })
	report := load.Stop()
	t.Logf("from one member to three and back, with new certificates: %s", report)
	e.Unharmed(registry, report)
	for _, name := range []string{"data-" + registry.Name + "-etcd-1", "data-" + registry.Name + "-etcd-2"} {
		if err := e.Get(t.Context(), name, &corev1.PersistentVolumeClaim{}); !apierrors.IsNotFound(err) {
			t.Errorf("claim %s of a member that was removed is there, or can't be read: %v", name, err)
		}
	}
}

// scale changes the number of etcd members, and waits until there are so many.
func scale(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, members int32) {
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
}
