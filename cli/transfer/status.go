package transfer

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// portable returns a status without the generations of an object, which mean nothing of
// another one. What was observed of a spec before the one that it is with, or of one that
// is not known, is left out: no one could tell later that it is of another endpoint.
func portable(status *v1beta1.ClusterStatus, generation int64) *v1beta1.ClusterStatus {
	if status == nil {
		return nil
	}
	out := status.DeepCopy()
	eachConditions(out, func(conditions []metav1.Condition) []metav1.Condition {
		return slices.DeleteFunc(conditions, func(c metav1.Condition) bool {
			return c.ObservedGeneration != 0 && c.ObservedGeneration != generation
		})
	})
	return observed(out, 0)
}

// observed returns a status with a generation of the object that gets it: whatever was
// observed was of the spec that came with it.
func observed(status *v1beta1.ClusterStatus, generation int64) *v1beta1.ClusterStatus {
	out := status.DeepCopy()
	out.ObservedGeneration = generation
	eachConditions(out, func(conditions []metav1.Condition) []metav1.Condition {
		for i := range conditions {
			conditions[i].ObservedGeneration = generation
		}
		return conditions
	})
	return out
}

// eachConditions changes all lists of conditions in a status.
func eachConditions(status *v1beta1.ClusterStatus, change func([]metav1.Condition) []metav1.Condition) {
	status.Conditions = change(status.Conditions)
	for i := range status.Reporters {
		status.Reporters[i].Conditions = change(status.Reporters[i].Conditions)
	}
}
