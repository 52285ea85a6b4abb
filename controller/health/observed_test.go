package health

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// TestWaitsEnd changes clusters while this side is cut off, when no verdict can follow. Tools that
// wait for observedGeneration go on after a change of a name, which is nothing to probe for; not
// after one of the endpoint. Conditions say in either case of which spec they are.
func TestWaitsEnd(t *testing.T) {
	clusters, names := entries(5)
	b := newBench(t, clusters...)
	b.check(names...)
	b.answer(down, names...)
	for range 6 {
		b.check(names...)
	}
	if !b.isolated {
		t.Fatal("this side is not cut off, so nothing is held back")
	}
	for name, change := range map[string]func(*v1beta1.ClusterSpec){
		names[0]: func(spec *v1beta1.ClusterSpec) { spec.DisplayName = "East" },
		names[1]: func(spec *v1beta1.ClusterSpec) { spec.Endpoints[0].URL = "https://elsewhere" },
	} {
		c := b.get(name)
		change(&c.Spec)
		c.Generation = 2
		if _, err := b.client.ClusterregistryV1beta1().Clusters().Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.settle(name)
		if got := waits(t, b.get(name)); got != status.InProgressStatus {
			t.Errorf("%s, before the change is seen: %s", name, got)
		}
	}
	b.answer(down, "elsewhere")
	b.check(names[0], names[1])
	for name, want := range map[string]status.Status{names[0]: status.CurrentStatus, names[1]: status.InProgressStatus} {
		c := b.get(name)
		if got := waits(t, c); got != want {
			t.Errorf("%s: %s; want %s: %+v", name, got, want, c.Status)
		}
		if is := meta.FindStatusCondition(c.Status.Conditions, Available); is == nil || is.ObservedGeneration != 1 {
			t.Errorf("%s: a condition that was held back is %+v; want one of generation 1", name, is)
		}
	}
	writes := b.writes.Load()
	b.check(names[0], names[1])
	if b.writes.Load() != writes {
		t.Errorf("what was reported is written again: %d writes more", b.writes.Load()-writes)
	}
}

// waits returns what tools that wait for a cluster make of it.
func waits(t *testing.T, c *v1beta1.Cluster) status.Status {
	t.Helper()
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: tree})
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}
