package measure

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMemory prints what the operator's leader takes with many paused registries.
func TestMemory(t *testing.T) {
	e := framework.New(t).WithOperator()
	metrics := e.NewMetrics()
	const resident = "process_resident_memory_bytes"
	before, err := metrics.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const count = 200
	t.Cleanup(func() {
		if err := e.Client.DeleteAllOf(context.Background(), &operatorv1alpha1.ClusterRegistry{}, client.InNamespace(e.Namespace)); err != nil {
			t.Error(err)
		}
	})
	for i := range count {
		registry := e.Sample("independent-nodeport.yaml")
		registry.Name, registry.Spec.Paused, registry.Spec.Server.Service = fmt.Sprintf("paused-%d", i), true, nil
		if err := e.Client.Create(t.Context(), registry); err != nil {
			t.Fatal(err)
		}
	}
	e.Eventually("the operator to have looked at all", func(ctx context.Context) error {
		var list operatorv1alpha1.ClusterRegistryList
		if err := e.Client.List(ctx, &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		for _, registry := range list.Items {
			c := meta.FindStatusCondition(registry.Status.Conditions, operatorv1alpha1.ConditionProgressing)
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != operatorv1alpha1.ReasonPaused {
				return fmt.Errorf("%s is not paused: %v", registry.Name, registry.Status.Conditions)
			}
		}
		return nil
	})
	after, err := metrics.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("resident memory of the leader: %.0f MiB, with %d paused registries %.0f MiB", before[resident]/(1<<20), count, after[resident]/(1<<20))
}
