package clusterregistry

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// maxHistory is how many transitions a status keeps.
const maxHistory = 16

// lastTransition returns the newest transition, an empty one when there is none.
func (s *scope) lastTransition() operatorv1alpha1.Transition {
	if len(s.registry.Status.History) == 0 {
		return operatorv1alpha1.Transition{}
	}
	return s.registry.Status.History[0]
}

// recordTransition begins an installation or upgrade. The oldest ones leave, but
// never the last that was completed.
func (s *scope) recordTransition(release string) {
	transition := operatorv1alpha1.Transition{Version: release, State: operatorv1alpha1.TransitionProgressing, StartTime: metav1.NewTime(s.now), Generation: s.registry.Generation}
	if s.registry.Spec.Etcd.External != nil && s.installed() {
		transition.Message = "etcd is external: there is no snapshot of it, and its version is left alone"
	}
	history := append([]operatorv1alpha1.Transition{transition}, s.registry.Status.History...)
	for i := len(history) - 1; len(history) > maxHistory; i-- {
		if history[i].State != operatorv1alpha1.TransitionCompleted || completed(history[:i]) {
			history = append(history[:i], history[i+1:]...)
		}
	}
	s.registry.Status.History = history
}

// remark adds what is to be known of the newest transition, which is in progress.
func (s *scope) remark(message string) {
	if s.lastTransition().State != operatorv1alpha1.TransitionProgressing {
		return
	}
	last := &s.registry.Status.History[0]
	if last.Message != "" {
		message = last.Message + "; " + message
	}
	last.Message = message
}

// completeTransition ends the newest transition.
func (s *scope) completeTransition(state operatorv1alpha1.TransitionState, message string) {
	last, now := &s.registry.Status.History[0], metav1.NewTime(s.now)
	last.State, last.CompletionTime, last.Generation = state, &now, s.registry.Generation
	if message != "" {
		last.Message = message
	}
}

// completed reports whether any transition has reached its version.
func completed(history []operatorv1alpha1.Transition) bool {
	for _, transition := range history {
		if transition.State == operatorv1alpha1.TransitionCompleted {
			return true
		}
	}
	return false
}

// advanceHistory begins the installation's entry, and completes it when the
// registry is ready for the first time.
func (s *scope) advanceHistory(conditions []metav1.Condition) {
	if s.registry.Status.Operation != nil || s.rendered == nil {
		return
	}
	last := s.lastTransition()
	if !s.installed() && last.Version != s.release.Version {
		if last.State == operatorv1alpha1.TransitionProgressing {
			s.completeTransition(operatorv1alpha1.TransitionAbandoned, "")
		}
		s.recordTransition(s.release.Version)
		last = s.lastTransition()
	}
	if last.State == operatorv1alpha1.TransitionProgressing && meta.IsStatusConditionTrue(conditions, operatorv1alpha1.ConditionReady) {
		s.completeTransition(operatorv1alpha1.TransitionCompleted, "")
	}
}
