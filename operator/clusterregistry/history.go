package clusterregistry

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/pass"
)

// advanceHistory begins the installation's entry, and completes it when all that clients
// need is ready for the first time: what acts on the content of the registry may follow.
func (s *scope) advanceHistory(conditions []metav1.Condition) {
	if s.Registry.Status.Operation != nil || s.Rendered == nil {
		return
	}
	if history.Install(s.Registry, s.Release.Version, s.Now) {
		s.Identity.TellInherited()
	}
	if history.Last(s.Registry).State == operatorv1alpha1.TransitionProgressing && s.served(conditions) {
		history.Complete(s.Registry, operatorv1alpha1.TransitionCompleted, "", s.Now)
	}
}

// served reports whether the registry is ready, whatever its controller does.
func (s *scope) served(conditions []metav1.Condition) bool {
	var needed []metav1.Condition
	for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
		if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
			needed = append(needed, *condition)
		}
	}
	return s.ready(needed).Status == metav1.ConditionTrue
}
