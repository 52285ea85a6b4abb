package clusterregistry

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestTriggers has a registry be reconciled for itself and for what is labeled as its own, but
// not for its status, which the operator writes; and what can't be watched yet, later.
func TestTriggers(t *testing.T) {
	r := &Reconciler{HostCluster: operandtest.Host(t)}
	var late []client.Object
	refuse := errors.New("not served")
	triggers := r.Triggers(func(trigger Trigger) error {
		if refuse == nil {
			late = append(late, trigger.Kind)
		}
		return refuse
	})
	before := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet", Generation: 1, ResourceVersion: "1"}}
	status, spec := before.DeepCopy(), before.DeepCopy()
	status.ResourceVersion, spec.ResourceVersion, spec.Generation = "2", "2", 2
	if a, b := triggers[0].Of(t.Context(), before, status), triggers[0].Of(t.Context(), before, spec); len(a) != 0 || len(b) != 1 || b[0].NamespacedName != client.ObjectKeyFromObject(before) {
		t.Errorf("a change of the status calls for %v, one of the spec for %v", a, b)
	}
	pod := operandtest.Secret("fleet-x", nil) // labeled
	moved := pod.DeepCopy()
	moved.Labels[operatorv1alpha1.LabelInstance] = "hub"
	for _, trigger := range triggers {
		if _, is := trigger.Kind.(*corev1.Pod); !is {
			continue
		}
		if n := []int{len(trigger.Of(t.Context(), nil, pod)), len(trigger.Of(t.Context(), pod, nil)), len(trigger.Of(t.Context(), pod, pod)), len(trigger.Of(t.Context(), pod, moved))}; n[0] != 1 || n[1] != 1 || n[2] != 1 || n[3] != 2 {
			t.Errorf("pods call for %v registries", n)
		}
	}
	if r.certManager.Watch() == nil || r.backupKind.Watch() == nil {
		t.Error("what can't be watched counts as watched")
	}
	refuse = nil
	if err := errors.Join(r.certManager.Watch(), r.backupKind.Watch()); err != nil || len(late) != 3 {
		t.Errorf("%v are watched, %v", late, err)
	}
}
