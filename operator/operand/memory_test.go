package operand

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/operator/verdict"
)

// TestMemoryNoted is about what becomes of a container that the host cluster killed at its
// limit: a reason where the part does not serve, a note where it serves again.
func TestMemoryNoted(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct{ reason, killed, notReady, note, says string }{
		{"it was killed at its limit", "OOMKilled", "OOMKilled", "OOMKilled", "a note; pod p: container server was killed at its memory limit (OOMKilled, 2026-01-01T11:59:00Z, 0 restarts): raise spec.server.resources.limits.memory"},
		{"it failed otherwise", "Error", "R", "Noted", "a note"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "server"}}}}
		pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: test.killed, ExitCode: 137, FinishedAt: metav1.NewTime(now.Add(-time.Minute))}
		if got := MemoryReason("R", []corev1.Pod{*pod}, now); got != test.notReady {
			t.Errorf("%s: a part that does not serve has reason %s", test.reason, got)
		}
		v := NoteMemory(verdict.Verdict{Reason: "Noted", Message: "a note"}, []corev1.Pod{*pod}, now)
		if !v.Complete() || v.Reason != test.note || v.Message != test.says {
			t.Errorf("%s: a part that serves: %+v", test.reason, v)
		}
	}
}
