package membership

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterregistry/operator/operator/operand"
)

// TestSetBack takes a member for lost whose log lacks what it has acknowledged, where all others
// agree without it, and none whose log the others contradict: that one may have what they lost.
func TestSetBack(t *testing.T) {
	for _, test := range []struct {
		reason, ends string
		disagree     bool
		lost         bool
	}{
		{"its volume was set back", `panic: tocommit(340) is out of range [lastIndex(301)]. Was the raft log corrupted, truncated, or lost?`, false, true},
		{"only the end of what it printed was kept", "go.etcd.io/raft/v3.(*raftLog).commitTo(0xc000482d20, 0x154)\n\traft/log.go:307 +0xe8", false, true},
		{"its volume was set back, and the others disagree", `panic: tocommit(340) is out of range [lastIndex(301)]`, true, false},
		{"the others contradict what was committed", `panic: entry 302 conflict with committed entry [committed(340)]`, false, false},
		{"something else", "panic: runtime error", false, false},
	} {
		w := newWorld(t, 3)
		if w.corrupt = w.name(1); test.disagree {
			w.corrupt = w.name(2)
		}
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: operand.ComponentEtcd,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: test.ends}}}}}}
		pod.Name = w.name(1)
		c := w.change()
		why, err := c.gone(t.Context(), pod, nil)
		if err != nil || (why != "") != test.lost || (c.differs == w.name(1)) != test.lost {
			t.Errorf("%s: %q, %v; it is compared again before it is removed: %q", test.reason, why, err, c.differs)
		}
	}
}
