package clusterregistry

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestCrashing is about members that a corrected spec must reach, and servers that
// the host has ended and replaced.
func TestCrashing(t *testing.T) {
	for reason, test := range map[string]struct {
		pod               string
		crashing, running bool
	}{
		"etcd fails at every start":     {`{status: {phase: Running, containerStatuses: [{name: etcd, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137}}}]}}`, true, true},
		"etcd is being started":         {`{status: {phase: Pending, containerStatuses: [{name: etcd, state: {waiting: {reason: ContainerCreating}}}]}}`, false, true},
		"etcd runs again after a crash": {`{status: {phase: Running, containerStatuses: [{name: etcd, state: {running: {}}, lastState: {terminated: {exitCode: 137}}}]}}`, false, true},
		"a node had no room for it":     {`{status: {phase: Failed, reason: Evicted}}`, false, false},
	} {
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(test.pod), pod); err != nil {
			t.Fatal(err)
		}
		if got := crashing(pod); got != test.crashing {
			t.Errorf("%s: crashing %v", reason, got)
		}
		if got := len(running([]corev1.Pod{*pod})) == 1; got != test.running {
			t.Errorf("%s: running %v", reason, got)
		}
	}
}

func TestPodProblem(t *testing.T) {
	for reason, test := range map[string]struct{ pod, want string }{
		"no node fits": {`{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", message: 0/3 nodes are available}]}}`,
			"pod p finds no node: 0/3 nodes are available"},
		"the scheduler has not looked": {`{status: {phase: Pending}}`, "pod p is being given a node"},
		"images are pulled":            {`{spec: {nodeName: node-1}, status: {phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: ContainerCreating}}}]}}`, "pod p on node node-1 is being started"},
		"an image is not there": {`{spec: {nodeName: node-1}, status: {phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "x"'}}}]}}`,
			`pod p: container c waits (ImagePullBackOff): Back-off pulling image "x"`},
		"a crash says its last words, not that it is awaited": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: c, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}},
			lastState: {terminated: {exitCode: 1, message: "first line\nlast line\n"}}}]}}`, "pod p: container c ended with code 1: first line | last line"},
		"the guard refuses": {`{spec: {nodeName: node-1}, status: {phase: Pending, initContainerStatuses: [{name: guard, state: {terminated: {exitCode: 3, message: empty}}}], containerStatuses: [{name: c, state: {waiting: {reason: PodInitializing}}}]}}`,
			"pod p: container guard ended with code 3: empty"},
		"the guard refuses in etcd's own container": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: etcd, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, lastState: {terminated: {exitCode: 65, message: empty}}}]}}`,
			"pod p: container etcd ended with code 65: empty"},
		"etcd itself fails": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: etcd, state: {terminated: {exitCode: 1, message: panic}}}]}}`,
			"pod p: container etcd ended with code 1: panic"},
		"etcd runs after the guard refused": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: etcd, state: {running: {}}, lastState: {terminated: {exitCode: 65}}}]}}`,
			"pod p on node node-1 is running, but not ready"},
		"a server ends with the guard's code": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: server, state: {terminated: {exitCode: 65, message: gone}}}]}}`,
			"pod p: container server ended with code 65: gone"},
		"a guard that is done is no problem": {`{spec: {nodeName: node-1}, status: {phase: Running, initContainerStatuses: [{name: guard, state: {terminated: {exitCode: 0}}}], containerStatuses: [{name: c, state: {running: {}}}]}}`,
			"pod p on node node-1 is running, but not ready"},
		"it came back after a crash":        {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: c, state: {running: {}}, lastState: {terminated: {exitCode: 1}}}]}}`, "pod p on node node-1 is running, but not ready"},
		"it is on its way out, or its node": {`{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {nodeName: node-1}}`, "pod p on node node-1 ends"},
	} {
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(test.pod), pod); err != nil {
			t.Fatal(err)
		}
		pod.Name = "p"
		if got := podProblem(pod); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
		if refuses := guardRefuses([]corev1.Pod{*pod}); (refuses != "") != strings.HasPrefix(reason, "the guard refuses") {
			t.Errorf("%s: the guard refuses: %q", reason, refuses)
		}
	}
}

func TestLastLines(t *testing.T) {
	if got := lastLines(strings.Repeat("x", 1000) + "the end"); len(got) != 403 || !strings.HasPrefix(got, "...x") || !strings.HasSuffix(got, "the end") {
		t.Errorf("%d characters: %s", len(got), got)
	}
}
