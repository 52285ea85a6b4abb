package members

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCurrentPods is about which pods are known to be made from the template that
// was applied last: as long as its revision is not known, none is.
func TestCurrentPods(t *testing.T) {
	pod := func(name, revision string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}}}
	}
	pods := []corev1.Pod{pod("a", "old"), pod("b", "new")}
	for _, test := range []struct {
		reason         string
		observed       int64
		revision       string
		outdated, want []string
	}{
		{"one was replaced", 2, "new", []string{"a"}, []string{"b"}},
		{"the template has changed since", 1, "new", []string{"a"}, nil},
		{"nothing has changed", 2, "old", []string{"b"}, []string{"a"}},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: appsv1.StatefulSetStatus{ObservedGeneration: test.observed, UpdateRevision: test.revision}}
		outdated := outdatedPods(set, pods)
		if current := currentPods(set, pods, outdated); !slices.Equal(outdated, test.outdated) || !slices.Equal(current, test.want) {
			t.Errorf("%s: outdated %v, current %v", test.reason, outdated, current)
		}
	}
}
