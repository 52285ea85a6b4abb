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
	if s.Registry.Status.Operation != nil || s.Rendered == nil {
		return
	}
	last := history.Last(s.Registry)
	if !s.Installed() && last.Version != s.release.Version {
		if last.State == operatorv1alpha1.TransitionProgressing {
			history.Complete(s.Registry, operatorv1alpha1.TransitionAbandoned, "", s.Now)
		}
		history.Begin(s.Registry, s.release.Version, s.Now)
		last = history.Last(s.Registry)
	}
	if last.State == operatorv1alpha1.TransitionProgressing && meta.IsStatusConditionTrue(conditions, operatorv1alpha1.ConditionReady) {
		history.Complete(s.Registry, operatorv1alpha1.TransitionCompleted, "", s.Now)
	}
}
