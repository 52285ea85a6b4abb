package decide

import (
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// repulsion is the gravest effect of the taints of a cluster that are not tolerated.
type repulsion int

const (
	none repulsion = iota
	preferNot
	noNew
	evict
)

// repels returns how a cluster is kept from being selected.
func repels(taints []v1beta1.Taint, tolerations []operatorv1alpha1.ClusterToleration) repulsion {
	worst := none
	for _, taint := range taints {
		if tolerated(taint, tolerations) {
			continue
		}
		switch taint.Effect {
		case v1beta1.TaintNoExecute:
			worst = max(worst, evict)
		case v1beta1.TaintPreferNoSchedule:
			worst = max(worst, preferNot)
		default: // also one that a later release of the registry knows
			worst = max(worst, noNew)
		}
	}
	return worst
}

// tolerated reports whether one of tolerations is for a taint, by the rules for pods.
func tolerated(taint v1beta1.Taint, tolerations []operatorv1alpha1.ClusterToleration) bool {
	for _, t := range tolerations {
		switch {
		case t.Key != "" && t.Key != taint.Key || t.Effect != "" && t.Effect != string(taint.Effect):
		case t.Operator == operatorv1alpha1.TolerationExists, t.Key != "" && t.Value == taint.Value:
			return true
		}
	}
	return false
}
