package diagnose

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestReady(t *testing.T) {
	for reason, test := range map[string]struct {
		pod   string
		since string
	}{
		"kubelet has said nothing":       {`{}`, ""},
		"it is not ready":                {`{status: {conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, ""},
		"its containers are, but not it": {`{status: {conditions: [{type: ContainersReady, status: "True"}]}}`, ""},
		"it is ready": {`{status: {conditions: [{type: PodScheduled, status: "True", lastTransitionTime: "2025-01-01T00:00:00Z"}, {type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`,
			"2026-01-01T00:00:00Z"},
	} {
		pod := read[corev1.Pod](t, test.pod)
		since := ""
		if condition := ReadyCondition(pod); condition != nil {
			since = condition.LastTransitionTime.UTC().Format(time.RFC3339)
		}
		if since != test.since || Ready(pod) != (test.since != "") {
			t.Errorf("%s: ready %v, since %q", reason, Ready(pod), since)
		}
	}
}

// TestCrashLooping is about members that a corrected spec must reach.
func TestCrashLooping(t *testing.T) {
	for reason, test := range map[string]struct {
		pod  string
		want bool
	}{
		"etcd fails at every start":     {`{status: {phase: Running, containerStatuses: [{name: etcd, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137}}}]}}`, true},
		"etcd is done at every start":   {`{status: {phase: Running, containerStatuses: [{name: etcd, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 0}}}]}}`, false},
		"another container fails":       {`{status: {phase: Running, containerStatuses: [{name: proxy, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137}}}]}}`, false},
		"etcd is being started":         {`{status: {phase: Pending, containerStatuses: [{name: etcd, state: {waiting: {reason: ContainerCreating}}}]}}`, false},
		"etcd failed just now":          {`{status: {phase: Running, containerStatuses: [{name: etcd, state: {terminated: {exitCode: 137}}}]}}`, false},
		"etcd runs again after a crash": {`{status: {phase: Running, containerStatuses: [{name: etcd, state: {running: {}}, lastState: {terminated: {exitCode: 137}}}]}}`, false},
	} {
		if got := CrashLooping(read[corev1.Pod](t, test.pod), "etcd"); got != test.want {
			t.Errorf("%s: %v", reason, got)
		}
	}
}

// TestPod is about what a pod says that is not ready, and of which of them the guard
// refuses to start etcd.
func TestPod(t *testing.T) {
	for reason, test := range map[string]struct{ pod, want string }{
		"no node fits": {`{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", message: 0/3 nodes are available}]}}`,
			"pod p can't be scheduled: 0/3 nodes are available"},
		"the scheduler has not looked": {`{status: {phase: Pending}}`, "pod p is waiting to be scheduled"},
		"images are pulled":            {`{spec: {nodeName: node-1}, status: {phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: ContainerCreating}}}]}}`, "pod p on node node-1 is starting"},
		"an image is not there": {`{spec: {nodeName: node-1}, status: {phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "x"'}}}]}}`,
			`pod p: container c is waiting (ImagePullBackOff): Back-off pulling image "x"`},
		"a crash says its last words, not that it is awaited": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: c, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}},
			lastState: {terminated: {exitCode: 1, message: "first line\nlast line\n"}}}]}}`, "pod p: container c exited with code 1: first line | last line"},
		"an init container comes before the others": {`{spec: {nodeName: node-1}, status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 1, message: first}}}], containerStatuses: [{name: c, state: {terminated: {exitCode: 2, message: second}}}]}}`,
			"pod p: container i exited with code 1: first"},
		"a container was killed at its memory limit": {`{spec: {nodeName: node-1, containers: [{name: server, resources: {limits: {memory: 1Gi}}}]}, status: {phase: Running, containerStatuses: [{name: server, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: "2026-01-01T00:00:00Z"}}}]}}`,
			"pod p: container server was killed at its memory limit, 1Gi (OOMKilled, 2026-01-01T00:00:00Z, 3 restarts): raise spec.server.resources.limits.memory"},
		"the guard refuses in etcd's own container": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: etcd, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, lastState: {terminated: {exitCode: 65, message: empty}}}]}}`,
			"pod p: container etcd exited with code 65: empty"},
		"the guard can't know yet": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: etcd, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, lastState: {terminated: {exitCode: 66, message: no member answers}}}]}}`,
			"pod p: container etcd exited with code 66: no member answers"},
		"etcd itself fails": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: etcd, state: {terminated: {exitCode: 1, message: panic}}}]}}`,
			"pod p: container etcd exited with code 1: panic"},
		"etcd's disk is full": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: etcd, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, lastState: {terminated: {exitCode: 1, message: '{"level":"fatal","msg":"failed to commit tx","error":"write /data/db: no space left on device","stacktrace":"backend.(*batchTx).commit"}'}}}]}}`,
			"pod p: container etcd exited with code 1: failed to commit tx: write /data/db: no space left on device; its volume is full: raise spec.etcd.storage.size, or make room on the disk that the volume is on"},
		"etcd runs after the guard refused": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: etcd, state: {running: {}}, lastState: {terminated: {exitCode: 65}}}]}}`,
			"pod p on node node-1 is running, but not ready"},
		"a server ends with the guard's code": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: server, state: {terminated: {exitCode: 65, message: gone}}}]}}`,
			"pod p: container server exited with code 65: gone"},
		"it came back after a crash": {`{spec: {nodeName: node-1}, status: {phase: Running, containerStatuses: [{name: c, state: {running: {}}, lastState: {terminated: {exitCode: 1}}}]}}`, "pod p on node node-1 is running, but not ready"},
		"a server's container is started again beside another": {`{spec: {nodeName: node-1, restartPolicy: Always}, status: {phase: Running, containerStatuses: [{name: server, state: {terminated: {exitCode: 0}}}, {name: mesh-proxy, state: {running: {}}}]}}`,
			"pod p on node node-1 is running, but not ready"},
		"another container runs beside that of a Job, which is done": {`{spec: {nodeName: node-1, restartPolicy: Never}, status: {phase: Running, containerStatuses: [{name: backup, state: {terminated: {exitCode: 0}}}, {name: mesh-proxy, state: {running: {}}}]}}`,
			"pod p does not complete, since container mesh-proxy keeps running, which a webhook has added, as that of a service mesh does: have it leave out this namespace"},
		"it is on its way out, or its node": {`{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {nodeName: node-1}}`, "pod p on node node-1 is terminating"},
	} {
		pod := read[corev1.Pod](t, test.pod)
		pod.Name = "p"
		if got := Pod(pod); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
		refuses, says := strings.HasPrefix(reason, "the guard refuses"), ""
		if refuses {
			says = test.want
		}
		fine := corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd"}}}}
		if got := Guard([]corev1.Pod{fine, *pod}); got != says || GuardRefuses(pod) != refuses {
			t.Errorf("%s: the guard refuses: %v, %q", reason, GuardRefuses(pod), got)
		}
	}
}
