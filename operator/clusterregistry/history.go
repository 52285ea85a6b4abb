package clusterregistry

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// maxHistory is how many transitions a status keeps.
const maxHistory = 16

// advanceHistory begins the installation's entry, and completes it when the
// registry is ready for the first time.
func (s *scope) advanceHistory(conditions []metav1.Condition) {
	history := s.registry.Status.History
	now := metav1.NewTime(s.now)
	if len(history) == 0 {
		if s.rendered == nil {
			return // nothing was begun
		}
		history = []operatorv1alpha1.Transition{{Version: s.release.Version, State: operatorv1alpha1.TransitionProgressing, StartedTime: now}}
	}
	if history[0].State == operatorv1alpha1.TransitionProgressing && meta.IsStatusConditionTrue(conditions, operatorv1alpha1.ConditionReady) {
		history[0].State, history[0].CompletedTime = operatorv1alpha1.TransitionCompleted, &now
	}
	s.registry.Status.History = history[:min(len(history), maxHistory)]
}
