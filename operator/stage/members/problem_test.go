package members

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestCordoned is about the last member, which was evicted from node n1, where its volume is:
// when that is cordoned, the message has both ways on.
func TestCordoned(t *testing.T) {
	const cordoned, replace = "kubectl uncordon n1", "kubectl registry etcd replace -n team fleet-etcd-2"
	for _, test := range []struct {
		reason     string
		members    int
		cordoned   bool
		local      bool
		says, lies []string
	}{
		{"its node is cordoned", 3, true, true, []string{"no node fits", "the volume of fleet-etcd-2, pv, can be used on n1 only", cordoned, replace}, nil},
		{"it is the only member", 1, true, true, []string{"the volume of fleet-etcd-0, pv, can be used on n1 only", cordoned}, []string{"replace"}},
		{"its node is not cordoned", 3, false, true, []string{"no node fits"}, []string{"uncordon", "replace"}},
		{"its volume can be used anywhere", 3, true, false, []string{"no node fits"}, []string{"uncordon", "replace"}},
	} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
		if test.local {
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}}
		}
		objects := []client.Object{pv}
		for _, name := range []string{"n1", "n2"} {
			objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}}, Spec: corev1.NodeSpec{Unschedulable: test.cordoned && name == "n1"}})
		}
		m := newManaged(t, test.members, func(m *managed) { m.others = objects })
		last := *m.pods[test.members-1].DeepCopy()
		last.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no node fits"}}}
		m.Volumes.Members = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-" + last.Name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}}
		message := m.membersProblem(t.Context(), m.state, m.set, []corev1.Pod{last})
		for _, text := range test.says {
			if !strings.Contains(message, text) {
				t.Errorf("%s: %q is not in %q", test.reason, text, message)
			}
		}
		for _, text := range test.lies {
			if strings.Contains(message, text) {
				t.Errorf("%s: %q is in %q", test.reason, text, message)
			}
		}
	}
}

// TestContradicted is about a member whose etcd ends since the others have committed something
// else: the message says what it may have, and how to go on.
func TestContradicted(t *testing.T) {
	const replace = "fleet-etcd-0 may have what the other members have lost, as after their volumes were set back to older copies, and is not replaced automatically: save its volume if you need that, and then give the member a new one: kubectl registry etcd replace -n team fleet-etcd-0"
	for _, test := range []struct {
		reason  string
		members int
		words   string
		says    bool
	}{
		{"the others contradict it", 3, "panic: entry 302 conflict with committed entry [committed(340)]", true},
		{"kubelet kept the end", 3, "go.etcd.io/raft/v3.(*raftLog).maybeAppend(0xc0003)", true},
		{"something else", 3, "panic: no space left on device", false},
		{"it is the only member", 1, "panic: entry 302 conflict with committed entry [committed(340)]", false},
	} {
		m := newManaged(t, test.members, func(*managed) {})
		broken := *m.pods[0].DeepCopy()
		broken.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd",
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: test.words}}}}}
		message := m.membersProblem(t.Context(), m.state, m.set, []corev1.Pod{broken})
		if strings.Contains(message, replace) != test.says || !strings.Contains(message, "fleet-etcd-0") {
			t.Errorf("%s: %q", test.reason, message)
		}
	}
}
