package diagnose

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// An End is why etcd has ended.
type End int

const (
	// OtherEnd is what says nothing about the data.
	OtherEnd End = iota
	// Contradicted is that of a member which has something else than what the others have
	// committed: it may have the only copy of what these have lost.
	Contradicted
	// Damaged is that of one with a file that can't be read.
	Damaged
	// Behind is that of one which lacks what it has acknowledged, as after its volume was set back.
	Behind
	// Differs is that of one which does not have the data of another member: which of the two is
	// wrong, etcd does not say.
	Differs
)

// ends has what etcd (v3.6 and v3.7) and its database end with: the words, or, where kubelet kept
// only the end of what they printed, the function that says them. Of what may be the only copy,
// nothing else must be believed: it comes first.
var ends = []struct {
	end   End
	texts []string
}{
	{Contradicted, []string{"conflict with committed entry", "(*raftLog).maybeAppend("}},
	{Damaged, []string{"walpb: crc mismatch", "crc mismatch", "invalid database", "file size too small", "freelist: already freed", "unexpected page type", "max entry size limit exceeded"}},
	{Behind, []string{"is out of range [lastIndex(", "(*raftLog).commitTo("}},
	{Differs, []string{"checkInitialHashKV failed", "found data inconsistency with peers"}},
}

// LastWords returns why etcd has ended, by the last that it has printed, and the text in it that
// says so.
func LastWords(words string) (End, string) {
	for _, e := range ends {
		for _, text := range e.texts {
			if strings.Contains(words, text) {
				return e.end, text
			}
		}
	}
	return OtherEnd, ""
}

// EtcdEnd returns why the etcd of a pod has ended, and the text that says so.
func EtcdEnd(pod *corev1.Pod) (End, string) {
	for _, status := range pod.Status.ContainerStatuses {
		if failure := Failure(status); status.Name == etcdContainer && failure != nil {
			return LastWords(failure.Message)
		}
	}
	return OtherEnd, ""
}
