package install

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// rate is how many requests clients send in a second while a registry is edited.
const rate = 50

// edited changes a registry while clients write: the number of servers, their
// arguments, and what etcd's members ask for, for which each has to restart.
func edited(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate, framework.Pending(2*rate))
	load.Settle(t)
	rounds := 1
	if framework.Full() {
		rounds = 5
	}
	for round := range rounds {
		memory := resource.MustParse("160Mi")
		memory.Add(*resource.NewQuantity(int64(round)<<20, resource.BinarySI))
		e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
			spec.Server.Replicas = 3
			spec.Server.ExtraArgs = map[string]operatorv1alpha1.Argument{"request-timeout": "50s"}
			spec.Etcd.Resources.Requests = map[corev1.ResourceName]resource.Quantity{corev1.ResourceCPU: resource.MustParse("40m"), corev1.ResourceMemory: memory}
		})
		e.WaitReady(registry)
		checkEdited(t, e, registry)
		load.Settle(t)
	}
	report := load.Stop()
	t.Logf("%d times edited: %s", rounds, report)
	e.In(t).Unharmed(registry, report)
}

// checkEdited looks whether a registry that says it is ready has just pods that
// are as its spec says.
func checkEdited(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	if status := registry.Status.Server; status.Replicas != 3 || status.ReadyReplicas != 3 || status.UpdatedReplicas != 3 {
		t.Errorf("it is ready with the servers %+v", status)
	}
	var pods corev1.PodList
	if err := e.Client.List(t.Context(), &pods, client.InNamespace(e.Namespace), client.MatchingLabels{operatorv1alpha1.LabelInstance: registry.Name, operatorv1alpha1.LabelComponent: "etcd"}); err != nil {
		t.Fatal(err)
	}
	want := registry.Spec.Etcd.Resources.Requests[corev1.ResourceMemory]
	for _, pod := range pods.Items {
		if got := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory]; got.Cmp(want) != 0 {
			t.Errorf("it is ready, and pod %s asks for %s of memory, not %s", pod.Name, &got, &want)
		}
	}
}
