package clusterregistry

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/operator/operand"
)

// TestOutOfMemory is about what becomes of a container that the host killed at its
// limit: a reason where the part does not serve, a note where it serves again.
func TestOutOfMemory(t *testing.T) {
	for _, test := range []struct {
		reason, killed string // killed is kubelet's reason
		want           string
	}{
		{"it was killed at its limit", "OOMKilled", "pod p: container server was killed at its memory limit"},
		{"it failed otherwise", "Error", ""},
	} {
		s := look(t, "{spec: {mode: Aggregated}, status: {version: v0.1.0, server: {readyReplicas: 2}"+complete+"}}")
		pod := corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "server"}}}}
		pod.Name = "p"
		pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: test.killed, ExitCode: 137, FinishedAt: metav1.NewTime(s.Now.Add(-time.Minute))}
		wantReason := "R"
		if test.want != "" {
			wantReason = "OOMKilled"
		}
		if reason := operand.MemoryReason("R", []corev1.Pod{pod}, s.Now); reason != wantReason {
			t.Errorf("%s: a part that does not serve has reason %s", test.reason, reason)
		}
		for _, kind := range []string{"VersionSupported", "CertificatesReady", "EtcdReady", "ServerReady", "APIServiceReady"} {
			s.record(kind, done)
		}
		s.record("ServerReady", operand.NoteMemory(done, []corev1.Pod{pod}, s.Now))
		conditions := s.conditions()
		server, ready := meta.FindStatusCondition(conditions, "ServerReady"), meta.FindStatusCondition(conditions, "Ready")
		if server.Status != "True" || ready.Status != "True" || (server.Reason == "OOMKilled") != (test.want != "") {
			t.Errorf("%s: %s %s, the sum %s", test.reason, server.Status, server.Reason, ready.Status)
		}
		for _, condition := range []string{server.Message, ready.Message} {
			if strings.Contains(condition, "pod p") != (test.want != "") || !strings.Contains(condition, test.want) {
				t.Errorf("%s: a part that serves says %s", test.reason, condition)
			}
		}
	}
}
