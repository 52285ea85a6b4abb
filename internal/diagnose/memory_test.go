package diagnose

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestOutOfMemory is about containers that kubelet reports as killed at their limit.
func TestOutOfMemory(t *testing.T) {
	const raise = ": raise spec.server.resources.limits.memory"
	const killed = "pod p: container server was killed at its memory limit, 1Gi (OOMKilled, 2026-01-01T11:59:00Z, "
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct{ reason, container, limits, status, want string }{
		{"it was never killed", "server", "{memory: 1Gi}", "{state: {running: {}}}", ""},
		{"it waits to be started again", "server", "{memory: 1Gi}", "{restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}", killed + "3 restarts)" + raise},
		{"it was killed just now", "server", "{memory: 1Gi}", "{state: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}", killed + "0 restarts)" + raise},
		{"it runs again", "server", "{memory: 1Gi}", "{restartCount: 1, state: {running: {}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}", killed + "1 restarts)" + raise},
		{"it has run for an hour since", "server", "{memory: 1Gi}", "{state: {running: {}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: HOUR}}}", ""},
		{"it failed for something else since", "server", "{memory: 1Gi}", "{state: {terminated: {reason: Error, exitCode: 1, finishedAt: MINUTE}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}", ""},
		{"it has no limit of its own", "server", "{}", "{state: {running: {}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}",
			"pod p: container server was killed at its memory limit (OOMKilled, 2026-01-01T11:59:00Z, 0 restarts)" + raise},
		{"an etcd member", "etcd", "{memory: 2Gi}", "{state: {running: {}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}",
			"pod p: container etcd was killed at its memory limit, 2Gi (OOMKilled, 2026-01-01T11:59:00Z, 0 restarts): raise spec.etcd.resources.limits.memory"},
		{"a sidecar that a webhook has added", "proxy", "{memory: 1Gi}", "{state: {running: {}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: MINUTE}}}",
			"pod p: container proxy was killed at its memory limit, 1Gi (OOMKilled, 2026-01-01T11:59:00Z, 0 restarts)"},
	} {
		status := strings.NewReplacer("MINUTE", `"2026-01-01T11:59:00Z"`, "HOUR", `"2026-01-01T11:00:00Z"`).Replace(test.status)
		pod := read[corev1.Pod](t, "{spec: {containers: [{name: "+test.container+", resources: {limits: "+test.limits+"}}]}, status: {containerStatuses: ["+status+"]}}")
		pod.Name, pod.Status.ContainerStatuses[0].Name = "p", test.container
		if got := OutOfMemory([]corev1.Pod{*pod}, now); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
		two := test.want
		if two != "" {
			two += "; " + test.want
		}
		if got := OutOfMemory([]corev1.Pod{*pod, *pod}, now); got != two {
			t.Errorf("%s, twice: %q, want %q", test.reason, got, two)
		}
	}
}
