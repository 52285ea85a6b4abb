package clusterregistry

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"
)

// TestOutOfMemory is about containers that the host killed at their limit.
func TestOutOfMemory(t *testing.T) {
	const raise = ": raise spec.server.resources.limits.memory"
	for _, test := range []struct {
		reason, container, state string
		says                     string
	}{
		{"it runs as ever", "server", "{state: {running: {}}}", ""},
		{"it waits to be started again", "server", "{restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}",
			"pod p: container server was killed at its limit of memory, 1Gi (OOMKilled, MINUTE, 3 restarts)" + raise},
		{"it runs again", "server", "{restartCount: 1, state: {running: {}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}",
			"pod p: container server was killed at its limit of memory, 1Gi (OOMKilled, MINUTE, 1 restarts)" + raise},
		{"it has run for hours since", "server", "{state: {running: {}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: HOURS}}}", ""},
		{"it ended for something else since", "server", "{state: {terminated: {reason: Error, exitCode: 1, finishedAt: MINUTE}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}", ""},
		{"a member of etcd", "etcd", "{state: {running: {}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}", ": raise spec.etcd.resources.limits.memory"},
		{"what somebody's webhook has added", "proxy", "{state: {running: {}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}", "container proxy was killed"},
	} {
		s := look(t, "{spec: {mode: Aggregated}, status: {version: v0.1.0, server: {ready: 2}"+complete+"}}")
		minute, hours := s.now.Add(-time.Minute).UTC().Format(time.RFC3339), s.now.Add(-5*time.Hour).UTC().Format(time.RFC3339)
		pod := &corev1.Pod{}
		text := "{spec: {containers: [{name: " + test.container + ", resources: {limits: {memory: 1Gi}}}]}, status: {phase: Running, containerStatuses: [" + test.state + "]}}"
		text = strings.NewReplacer("MINUTE", `"`+minute+`"`, "HOURS", `"`+hours+`"`).Replace(text)
		if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
			t.Fatal(err)
		}
		pod.Name, pod.Status.ContainerStatuses[0].Name = "p", test.container
		want := strings.ReplaceAll(test.says, "MINUTE", minute)
		got := s.outOfMemory([]corev1.Pod{*pod})
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", test.reason, got, want)
		}
		wantReason := "R"
		if want != "" {
			wantReason = "OutOfMemory"
		}
		if reason := s.orOutOfMemory("R", []corev1.Pod{*pod}); reason != wantReason {
			t.Errorf("%s: a part that does not serve has reason %s", test.reason, reason)
		}
		for _, kind := range []string{"VersionSupported", "CertificatesReady", "EtcdReady", "ServerReady", "APIServiceReady"} {
			s.record(kind, done)
		}
		s.record("ServerReady", s.memoryNoted(done, []corev1.Pod{*pod}))
		conditions := s.conditions()
		server, ready := meta.FindStatusCondition(conditions, "ServerReady"), meta.FindStatusCondition(conditions, "Ready")
		if server.Status != "True" || ready.Status != "True" || strings.Contains(server.Message, want) != strings.Contains(ready.Message, want) || !strings.Contains(ready.Message, want) {
			t.Errorf("%s: a part that serves says %s, the sum %s", test.reason, server.Message, ready.Message)
		}
		if want != "" && (server.Reason != "OutOfMemory" || podProblem(pod) == "pod p on node  is running, but not ready" && test.reason == "it waits to be started again") {
			t.Errorf("%s: %s, %s", test.reason, server.Reason, podProblem(pod))
		}
	}
}
