package membership

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
)

// TestQuorumLost says what is left where the data of a majority is certainly gone, and nothing
// where members may come back with theirs, however many do not answer.
func TestQuorumLost(t *testing.T) {
	for _, test := range []struct {
		reason  string
		members int
		change  func(*world)
		gone    string // the names of those that are, nothing where no quorum is lost
	}{
		{"all serve", 3, func(*world) {}, ""},
		{"one of three is empty", 3, func(w *world) { w.empties(2) }, ""},
		{"two of three are empty", 3, func(w *world) { w.empties(1, 2) }, "fleet-etcd-1 fleet-etcd-2"},
		{"all are empty", 3, func(w *world) { w.empties(0, 1, 2) }, "fleet-etcd-0 fleet-etcd-1 fleet-etcd-2"},
		{"two of three are cut off", 3, func(w *world) { w.dead[w.name(1)], w.dead[w.name(2)] = true, true }, ""},
		{"one is empty, and another one is cut off", 3, func(w *world) { w.empties(2); w.dead[w.name(1)] = true }, ""},
		{"two of five are empty, and one is cut off", 5, func(w *world) { w.empties(3, 4); w.dead[w.name(2)] = true }, ""},
		{"three of five are empty", 5, func(w *world) { w.empties(2, 3, 4) }, "fleet-etcd-2 fleet-etcd-3 fleet-etcd-4"},
		{"a single member is empty", 1, func(w *world) { w.empties(0) }, ""},
	} {
		w := newWorld(t, test.members)
		test.change(w)
		w.tick()
		c := w.change()
		got, err := c.QuorumLost(t.Context())
		if err != nil {
			t.Fatalf("%s: %s", test.reason, err)
		}
		var gone []string
		for _, m := range got {
			if m.DataGone {
				gone = append(gone, m.Name)
			}
			if m.Message == "" {
				t.Errorf("%s: %+v says nothing", test.reason, m)
			}
		}
		if strings.Join(gone, " ") != test.gone || got != nil && len(got) != test.members {
			t.Errorf("%s: %+v", test.reason, got)
		}
	}
}

// empties has the guards of members say that their data is gone.
func (w *world) empties(ordinals ...int) {
	for _, ordinal := range ordinals {
		w.data[w.claim(ordinal)], w.exit[w.name(ordinal)] = "", contract.GuardRefused
	}
}

// change returns a change as an operator finds it that reaches whom it can: without a majority,
// no member has a leader.
func (w *world) change() *Change {
	c := &Change{Objects: w.objects, Identity: identity.Read(w.t.Context(), w.objects), State: w.state(), Etcd: w}
	answer := 0
	for _, m := range c.State.Members {
		if m.Err == nil {
			answer++
		}
	}
	if answer > len(w.list)/2 {
		return c
	}
	c.State.List, c.State.ListErr = nil, errors.New("no member answers that has a leader")
	for i := range c.State.Members {
		if m := &c.State.Members[i]; m.Err == nil {
			m.Leader, m.Revision, m.Err = "", 100+int64(i), errors.New("it has no leader")
		}
	}
	return c
}

// TestQuorumLostRevisions says of those that are left up to which revision they go.
func TestQuorumLostRevisions(t *testing.T) {
	w := newWorld(t, 5)
	w.empties(2, 3, 4)
	w.dead[w.name(1)] = true
	w.tick()
	got, err := w.change().QuorumLost(t.Context())
	if err != nil || len(got) != 5 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got[0].Revision != 100 || got[0].Message != "it has its data" {
		t.Errorf("%+v", got[0])
	}
	if got[1].Revision != 0 || got[1].DataGone || got[1].Message != "its data may be left: it does not answer, and was on node n0" {
		t.Errorf("%+v", got[1])
	}
	if !got[2].DataGone || got[2].Message != "its data is lost or damaged" {
		t.Errorf("%+v", got[2])
	}
}

// TestRefused takes a member for lost also while its guard is asked once more, until it has
// run for long enough to have been let start.
func TestRefused(t *testing.T) {
	w := newWorld(t, 3)
	c := w.change()
	at := func(status corev1.ContainerState, last int32) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: operand.ComponentEtcd, State: status,
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: last}}}}}}
	}
	just := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.Now)}}
	long := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.Now.Add(-2 * started))}}
	for _, test := range []struct {
		reason string
		pod    *corev1.Pod
		want   bool
	}{
		{"it is asked once more", at(just, contract.GuardRefused), true},
		{"it was let start", at(long, contract.GuardRefused), false},
		{"its guard only waited", at(just, contract.GuardWaits), false},
		{"there is no pod", nil, false},
	} {
		if got := c.refused(test.pod); got != test.want {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}
