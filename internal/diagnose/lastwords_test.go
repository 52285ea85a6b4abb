package diagnose

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestLastWords tells from what etcd ends with whether its data is lost, and above all where it may
// be the only copy of what others have lost.
func TestLastWords(t *testing.T) {
	for _, test := range []struct {
		reason, words string
		end           End
		text          string
	}{
		{"the others contradict it", "panic: entry 302 conflict with committed entry [committed(340)]", Contradicted, "conflict with committed entry"},
		{"the others contradict it, and kubelet kept the end", "go.etcd.io/raft/v3.(*raftLog).maybeAppend(0xc0003, 0x1)\n\traft/log.go:117 +0x2a5", Contradicted, "(*raftLog).maybeAppend("},
		{"the others contradict it, and something else is printed", "walpb: crc mismatch\npanic: entry 302 conflict with committed entry [committed(340)]", Contradicted, "conflict with committed entry"},
		{"its log is damaged", `{"level":"fatal","msg":"failed to read WAL, cannot be repaired","error":"walpb: crc mismatch: expected: 1 computed: 2"}`, Damaged, "walpb: crc mismatch"},
		{"its snapshot is damaged", "snap: crc mismatch", Damaged, "crc mismatch"},
		{"its database is none", "panic: invalid database", Damaged, "invalid database"},
		{"its database is cut off", "panic: file size too small", Damaged, "file size too small"},
		{"pages are free twice", "panic: freelist: already freed page 12", Damaged, "freelist: already freed"},
		{"a page is of no type", "panic: assertion failed: unexpected page type, flags: 0", Damaged, "unexpected page type"},
		{"an entry is too long", `{"error":"wal: max entry size limit exceeded"}`, Damaged, "max entry size limit exceeded"},
		{"its volume was set back", "panic: tocommit(340) is out of range [lastIndex(301)]. Was the raft log corrupted, truncated, or lost?", Behind, "is out of range [lastIndex("},
		{"its volume was set back, and kubelet kept the end", "go.etcd.io/raft/v3.(*raftLog).commitTo(0xc000482d20, 0x154)\n\traft/log.go:307 +0xe8", Behind, "(*raftLog).commitTo("},
		{"it has other data", `{"level":"fatal","msg":"checkInitialHashKV failed"}`, Differs, "checkInitialHashKV failed"},
		{"it has other data, in other words", "test-0 found data inconsistency with peers", Differs, "found data inconsistency with peers"},
		{"its disk is full", "panic: write data/member/wal/0.tmp: no space left on device", OtherEnd, ""},
		{"a bug", "panic: runtime error: index out of range [3] with length 3", OtherEnd, ""},
		{"nothing", "", OtherEnd, ""},
	} {
		if end, text := LastWords(test.words); end != test.end || text != test.text {
			t.Errorf("%s: %d %q, not %d %q", test.reason, end, text, test.end, test.text)
		}
		ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: test.words}}
		for state, status := range map[string]corev1.ContainerStatus{
			"it has ended":              {Name: etcdContainer, State: ended},
			"it waits for a next start": {Name: etcdContainer, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, LastTerminationState: ended},
		} {
			if end, text := EtcdEnd(withContainers(corev1.ContainerStatus{Name: "injected", State: ended}, status)); end != test.end || text != test.text {
				t.Errorf("%s, %s: %d %q, not %d %q", test.reason, state, end, text, test.end, test.text)
			}
		}
		for state, status := range map[string]corev1.ContainerStatus{
			"another container has ended": {Name: "injected", State: ended},
			"it runs again":               {Name: etcdContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: ended},
		} {
			if end, text := EtcdEnd(withContainers(status)); end != OtherEnd || text != "" {
				t.Errorf("%s, %s: %d %q", test.reason, state, end, text)
			}
		}
	}
	if end, _ := EtcdEnd(withContainers()); end != OtherEnd {
		t.Errorf("a pod that has no status yet has ended: %d", end)
	}
}

func withContainers(statuses ...corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: statuses}}
}
