package hostcluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Holds returns why no operation would begin now that a person asks for.
func Holds(registry *v1alpha1.ClusterRegistry) []string {
	var out []string
	if registry.Spec.Paused {
		out = append(out, "spec.paused is true")
	}
	if operation := registry.Status.Operation; operation != nil {
		out = append(out, fmt.Sprintf("another operation is under way: %s to %s, %s", operation.Type, operation.To, operation.Progress))
	}
	ready := meta.FindStatusCondition(registry.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		out = append(out, "the operator has not reported of the registry")
	case ready.Status != metav1.ConditionTrue && registry.Status.Operation == nil:
		out = append(out, "the registry is not Ready: "+ready.Reason+": "+ready.Message)
	}
	return out
}
