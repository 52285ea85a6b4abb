package clusterregistry

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
)

// advanceHistory begins the installation's entry, and completes it when the
// registry is ready for the first time.
func (s *scope) advanceHistory(conditions []metav1.Condition) {
	if s.registry.Status.Operation != nil || s.rendered == nil {
		return
	}
	last := history.Last(s.registry)
	if !s.installed() && last.Version != s.release.Version {
		if last.State == operatorv1alpha1.TransitionProgressing {
			history.Complete(s.registry, operatorv1alpha1.TransitionAbandoned, "", s.now)
		}
		history.Begin(s.registry, s.release.Version, s.now)
		last = history.Last(s.registry)
	}
	if last.State == operatorv1alpha1.TransitionProgressing && meta.IsStatusConditionTrue(conditions, operatorv1alpha1.ConditionReady) {
		history.Complete(s.registry, operatorv1alpha1.TransitionCompleted, "", s.now)
	}
}
