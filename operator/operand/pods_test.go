package operand

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestRunning is about pods that the host cluster has ended and replaced, and keeps for a
// while.
func TestRunning(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]bool{
		corev1.PodPending: true, corev1.PodRunning: true, corev1.PodUnknown: true, corev1.PodFailed: false, corev1.PodSucceeded: false,
	} {
		pods := []corev1.Pod{{Status: corev1.PodStatus{Phase: phase}}}
		if got := len(Running(pods)) == 1; got != want || pods[0].Status.Phase != phase {
			t.Errorf("%s: running %v", phase, got)
		}
	}
}
