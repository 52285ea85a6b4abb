package membership

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
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
		{"a single member is empty", 1, func(w *world) { w.empties(0) }, "fleet-etcd-0"},
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

// TestQuorumLostBesideLearner judges a second failure by who votes: a member that is being added
// makes up for none.
func TestQuorumLostBesideLearner(t *testing.T) {
	for _, test := range []struct {
		reason  string
		learner func(*world) // what is so of the one that is being added
		gone    string       // the names of those whose data is gone, nothing where no quorum is lost
	}{
		{"the learner runs", func(*world) {}, "fleet-etcd-2"},
		{"the learner has no data yet", func(w *world) {
			w.data[w.claim(1)], w.exit[w.name(1)] = "", contract.GuardEmpty
		}, "fleet-etcd-1 fleet-etcd-2"},
		{"the learner may have got its vote, and is cut off", func(w *world) { w.dead[w.name(1)] = true }, ""},
	} {
		w := newWorld(t, 3)
		id := identity.Read(t.Context(), w.objects).Record.Members[w.name(1)]
		w.objects.Registry.Annotations = map[string]string{operatorv1alpha1.AnnotationReplaceMember: id}
		for learns := false; !learns; {
			if _, done := w.reconcile(); done {
				t.Fatal("no learner was added")
			}
			learns = len(w.list) == 3 && w.list[2].Learner && w.list[2].Name != ""
		}
		w.empties(2)
		test.learner(w)
		w.tick()
		got, err := w.change().QuorumLost(t.Context())
		if err != nil {
			t.Fatalf("%s: %s", test.reason, err)
		}
		var gone []string
		for _, m := range got {
			if m.DataGone {
				gone = append(gone, m.Name)
			}
		}
		if strings.Join(gone, " ") != test.gone {
			t.Errorf("%s: %+v", test.reason, got)
		}
	}
}

// TestSingleLost says that an etcd with one member has lost it where its data is certainly gone,
// and nothing while it may come back or serve, or has never served.
func TestSingleLost(t *testing.T) {
	empty := func(w *world) { w.empties(0); w.tick() }
	lostClaim := func(w *world) {
		claim := &corev1.PersistentVolumeClaim{}
		w.must(w.host.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: contract.EtcdMemberClaim(w.name(0))}, claim))
		claim.Status.Phase = corev1.ClaimLost
		w.must(w.host.Status().Update(w.t.Context(), claim))
	}
	runs := func(w *world) {
		pod := &corev1.Pod{}
		w.must(w.host.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: w.name(0)}, pod))
		since := metav1.NewTime(w.objects.Now.Add(-2 * started))
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: operand.ComponentEtcd, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}}}
		w.must(w.host.Status().Update(w.t.Context(), pod))
	}
	for _, test := range []struct {
		reason string
		change func(*world)
		record func(*etcd.Record)
		lost   bool
	}{
		{"its guard refuses it", empty, nil, true},
		{"its volume does not exist any more", lostClaim, nil, true},
		{"it does not answer", func(*world) {}, nil, false},
		{"its volume does not exist any more, and it runs", func(w *world) { lostClaim(w); runs(w) }, nil, false},
		{"its claim is gone, and the next pod will find out", func(w *world) {
			w.must(w.host.Delete(w.t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: contract.EtcdMemberClaim(w.name(0))}}))
		}, nil, false},
		{"its guard only waits", func(w *world) { w.exit[w.name(0)] = contract.GuardWaits; w.tick() }, nil, false},
		{"its volume has other data", func(w *world) { w.exit[w.name(0)] = contract.GuardForeign; w.tick() }, nil, false},
		{"it never formed", empty, func(r *etcd.Record) { r.InitialClusterState = contract.StateNew }, false},
		{"who it was is not recorded", empty, func(r *etcd.Record) { r.ClusterID = "" }, false},
		{"it is restored, and has not served", empty, func(r *etcd.Record) { r.Restored = &etcd.Restored{} }, false},
		{"it was restored, and has served", empty, func(r *etcd.Record) { r.Restored = (etcd.Restored{}).Done(time.Now()) }, true},
		{"it is recovered, and has not served", empty, func(r *etcd.Record) { r.Recovered = &etcd.Recovered{} }, false},
		{"it was recovered, and others are to join", empty, func(r *etcd.Record) { r.Recovered = (etcd.Recovered{}).Done(1, time.Now()) }, true},
		{"another one joins", empty, func(r *etcd.Record) { r.Joining, r.Members["fleet-etcd-1"] = "fleet-etcd-1", "b1" }, true},
		{"a person has it join without data", empty, func(r *etcd.Record) { r.Joining = "fleet-etcd-0" }, false},
	} {
		w := newWorld(t, 1)
		w.dead[w.name(0)] = true
		test.change(w)
		c := w.change()
		if test.record != nil {
			test.record(c.Identity.Record)
		}
		if got, err := c.QuorumLost(t.Context()); err != nil || (got != nil) != test.lost || got != nil && (!got[0].DataGone || got[0].Message == "") {
			t.Errorf("%s: %+v, %v", test.reason, got, err)
		}
	}
}

// empties has the guards of members say that their data is gone.
func (w *world) empties(ordinals ...int) {
	for _, ordinal := range ordinals {
		w.data[w.claim(ordinal)], w.exit[w.name(ordinal)] = "", contract.GuardRefused
	}
}

// change returns a change as an operator finds it.
func (w *world) change() *Change {
	return &Change{Objects: w.objects, Identity: identity.Read(w.t.Context(), w.objects), State: w.state(), Etcd: w}
}

// TestQuorumLostRevisions says of those that are left up to which revision they go.
func TestQuorumLostRevisions(t *testing.T) {
	w := newWorld(t, 5)
	w.empties(2, 3, 4)
	w.dead[w.name(1)] = true
	w.tick()
	c := w.change()
	got, err := c.QuorumLost(t.Context())
	if err != nil || len(got) != 5 {
		t.Fatalf("%+v, %v", got, err)
	}
	c.State.Members[0].Errors = []string{"alarm:CORRUPT"}
	if corrupt, err := c.QuorumLost(t.Context()); err != nil || got[0].Corrupt || !corrupt[0].Corrupt || corrupt[1].Corrupt || corrupt[2].Corrupt {
		t.Errorf("%+v, %v", corrupt, err)
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
		{"its guard has ended it", &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: operand.ComponentEtcd, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: contract.GuardRefused}}}}}}, true},
		{"it is asked once more", at(just, contract.GuardRefused), true},
		{"it was let start", at(long, contract.GuardRefused), false},
		{"its guard only waited", at(just, contract.GuardWaits), false},
		{"there is no pod", nil, false},
	} {
		if got := c.refused(test.pod, contract.GuardRefused); got != test.want {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}
