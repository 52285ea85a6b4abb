package members

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// replaced has some members be of the newest template already.
func replaced(names ...int) func(*managed) {
	return func(m *managed) {
		for _, i := range names {
			m.pods[i].Labels[appsv1.ControllerRevisionHashLabelKey] = "new"
		}
	}
}

// TestRoll says which member is evicted in which state, and which not.
func TestRoll(t *testing.T) {
	rolling := func(m *managed) { m.deployment.Status.UpdatedReplicas = 1 }
	down := func(i int) func(*managed) {
		return func(m *managed) {
			m.state.Members[i].Err = errors.New("it is down")
			m.pods[i].Status.Conditions = nil
		}
	}
	ends := func(i int, in time.Duration) func(*managed) {
		return func(m *managed) {
			at := metav1.NewTime(m.Now.Add(in))
			m.pods[i].DeletionTimestamp, m.pods[i].Finalizers, m.pods[i].Spec.NodeName = &at, []string{"example.org/kubelet"}, "n1"
		}
	}
	for _, test := range []struct {
		reason  string
		members int
		changes []func(*managed)
		evicted string
		says    string // the hold does, unless it is empty: then there is none
	}{
		{"a follower is the first", 3, nil, "fleet-etcd-1", "fleet-etcd-1 is being replaced"},
		{"the only one has no budget", 1, nil, "fleet-etcd-0", "fleet-etcd-0 is being replaced"},
		{"all are as wanted", 3, []func(*managed){replaced(0, 1, 2)}, "", ""},
		{"a node is being drained, and the host refuses", 3, []func(*managed){func(m *managed) { m.refusal = apierrors.NewTooManyRequests("disruption budget", 0) }}, "", "fleet-etcd-1 is next, but its eviction is refused for now: disruption budget"},
		{"it became another pod meanwhile", 3, []func(*managed){func(m *managed) { m.refusal = apierrors.NewConflict(schema.GroupResource{}, "", errors.New("uid")) }}, "", "fleet-etcd-1 is next"},
		{"it is gone already", 3, []func(*managed){func(m *managed) { m.refusal = apierrors.NewNotFound(schema.GroupResource{}, "") }}, "", "fleet-etcd-1 is being replaced"},
		{"the right is missing", 3, []func(*managed){func(m *managed) {
			m.refusal = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("pods/eviction"))
		}}, "", "evict pod fleet-etcd-1: "},
		{"servers are being replaced", 3, []func(*managed){rolling}, "", "fleet-etcd-1 is next, once the servers are replaced"},
		{"servers are to be replaced, and nobody has looked yet", 3, []func(*managed){func(m *managed) { m.deployment.Generation = 2 }}, "", "once the servers are replaced"},
		{"a server was evicted, and the one in its place comes up", 3, []func(*managed){func(m *managed) {
			_, pod := operandtest.Servers(2)
			pod.CreationTimestamp = metav1.NewTime(m.Now)
			m.pods = append(m.pods, pod)
		}}, "", "once the servers are replaced"},
		{"servers are being replaced, but the member does not serve anyway", 3, []func(*managed){rolling, down(1)}, "fleet-etcd-1", "fleet-etcd-1 is being replaced"},
		{"it was evicted, and ends", 3, []func(*managed){down(1), ends(1, time.Minute)}, "", "fleet-etcd-1 is being replaced"},
		{"it was evicted, and its node does not answer", 3, []func(*managed){down(1), ends(1, -time.Minute)}, "", "2 of 3 etcd members ready: pod fleet-etcd-1 on node n1 is terminating"},
		{"another member is down", 3, []func(*managed){replaced(2), down(2)}, "", "2 of 3 etcd members ready"},
		{"no node fits one", 3, []func(*managed){down(2), func(m *managed) { m.pods[2].Status.Phase = corev1.PodPending }}, "fleet-etcd-2", ""},
		{"an alarm is raised", 3, []func(*managed){func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "NOSPACE"}} }}, "", "NOSPACE is raised by member fleet-etcd-1"},
		{"an alarm is raised, and one is down", 3, []func(*managed){down(1), func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a0", Type: "NOSPACE"}} }}, "", "; besides, pod fleet-etcd-1"},
		{"a member was added by hand", 3, []func(*managed){func(m *managed) { m.state.List = append(m.state.List, etcd.Listed{ID: "a9"}) }}, "", "member a9 at  was added to etcd"},
		{"it is read-only", 3, []func(*managed){func(m *managed) { m.Freeze("spec.paused is false") }}, "", "nothing is changed now"},
	} {
		m := newManaged(t, test.members, test.changes...)
		v := m.members(t.Context())
		if test.says == "" && test.evicted == "" && !v.Complete() || test.says != "" && (v.Complete() || !strings.Contains(v.Message, test.says)) {
			t.Errorf("%s: %+v, want %q", test.reason, v, test.says)
		}
		if got := strings.Join(m.evicted, " "); got != test.evicted {
			t.Errorf("%s: evicted %q, want %q (%+v)", test.reason, got, test.evicted, v)
		}
	}
}

// TestEtcdReadyInTrouble is about an etcd whose members all serve: the registry is
// not ready, and goes on.
func TestEtcdReadyInTrouble(t *testing.T) {
	for reason, change := range map[string]func(*managed){
		operatorv1alpha1.ReasonNoSpace:           func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "NOSPACE"}} },
		operatorv1alpha1.ReasonCorrupt:           func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "CORRUPT"}} },
		operatorv1alpha1.ReasonMembershipDiffers: func(m *managed) { m.state.List = append(m.state.List, etcd.Listed{ID: "a9"}) },
	} {
		m := newManaged(t, 3, replaced(0, 1, 2), change)
		if v := m.members(t.Context()); v.Complete() || v.Reason != reason || v.State != verdict.Degraded {
			t.Errorf("%s: %+v", reason, v)
		}
	}
}

// TestStays is about members that are to run where their volumes can't follow: none of their
// pods is evicted, since the next one would never be scheduled.
func TestStays(t *testing.T) {
	for members, want := range map[int]struct{ reason, says string }{
		1: {operatorv1alpha1.ReasonMembersBlocked, "fleet-etcd-0 can't be moved: its volume pv can be used on n1 only"},
		3: {operatorv1alpha1.ReasonMembersChanging, "is not replaced by a pod of the latest template, but by a new member"},
	} {
		objects := []client.Object{&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}}}}}
		for _, name := range []string{"n1", "n2"} {
			objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}}})
		}
		m := newManaged(t, members, func(m *managed) {
			m.Registry.Spec.Etcd.NodeSelector = map[string]string{corev1.LabelHostname: "n2"}
			for _, pod := range m.pods {
				objects = append(objects, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-" + pod.Name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}})
			}
			m.others = objects
		})
		if v := m.members(t.Context()); v.Reason != want.reason || !strings.Contains(v.Message, want.says) || len(m.evicted) > 0 {
			t.Errorf("%d members: %+v, evicted %q", members, v, m.evicted)
		}
	}
}

// TestReplacing is about when servers whose template changes together with that of etcd's
// members, as with spec.images.repository, have to wait: until all members are replaced
// and ready, unless nobody would gain by that, or they can't be replaced.
func TestReplacing(t *testing.T) {
	young := func(i int) func(*managed) {
		return func(m *managed) {
			m.pods[i].CreationTimestamp, m.pods[i].Status.Conditions = metav1.NewTime(m.Now), nil
		}
	}
	lost := func(i int) func(*managed) {
		return func(m *managed) {
			m.state.Members[i].Err, m.pods[i].Status.Conditions = errors.New("it is lost"), nil
		}
	}
	for _, test := range []struct {
		reason    string
		changes   []func(*managed)
		replacing bool
	}{
		{"members wait to be replaced", nil, true},
		{"the last one comes up", []func(*managed){replaced(0, 1, 2), young(2)}, true},
		{"one was evicted, and its pod is not made again yet", []func(*managed){func(m *managed) {
			m.state.Members[0].Err, m.pods = errors.New("there is no pod"), m.pods[1:]
		}}, true},
		{"pods are not seen, and their members serve", []func(*managed){replaced(0, 1, 2), func(m *managed) { m.pods = m.pods[1:] }}, false},
		{"one was replaced, and etcd doesn't let the next go at this moment", []func(*managed){replaced(0), func(m *managed) {
			m.pods[0].CreationTimestamp, m.state.ListErr = metav1.NewTime(m.Now), errors.New("a follower is behind")
		}}, true},
		{"the StatefulSet has changed, and nobody has looked yet", []func(*managed){replaced(0, 1, 2), func(m *managed) { m.set.Generation = 2 }}, true},
		{"all members are replaced", []func(*managed){replaced(0, 1, 2)}, false},
		{"a member is down for another reason", []func(*managed){replaced(0, 1, 2), func(m *managed) { m.pods[1].Status.Conditions = nil }}, false},
		{"one is lost, so that the others can't be replaced", []func(*managed){replaced(2), lost(2)}, false},
		{"one is lost and to be replaced itself", []func(*managed){replaced(0, 2), lost(1)}, true},
		{"an alarm is against replacing any", []func(*managed){func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "NOSPACE"}} }}, false},
		// The servers' stage decides whether that matters to them.
		{"no server is ready", []func(*managed){func(m *managed) { m.deployment.Status.ReadyReplicas = 0 }}, true},
		{"servers are being replaced: members wait for them", []func(*managed){func(m *managed) { m.deployment.Status.UpdatedReplicas = 1 }}, true},
		{"it is read-only", []func(*managed){func(m *managed) { m.Freeze("spec.paused is false") }}, true},
		{"there is no StatefulSet yet", []func(*managed){func(m *managed) { m.set.Name = "another" }}, true},
	} {
		m := newManaged(t, 3, test.changes...)
		if v := m.members(t.Context()); m.found.Replacing != test.replacing {
			t.Errorf("%s: replacing %t, %+v", test.reason, m.found.Replacing, v)
		}
	}
}

// TestReplaceReadOnly has a member that can't be replaced be an error: a reconcile must not
// proceed as if it were.
func TestReplaceReadOnly(t *testing.T) {
	m := newManaged(t, 3)
	m.Freeze("this is resolved: EtcdReady: the members are not those that were recorded")
	if err := m.replace(t.Context(), m.pods[1]); !errors.Is(err, apply.ErrReadOnly) || apply.IgnoreReadOnly(err) != nil {
		t.Error(err)
	}
	if len(m.evicted) > 0 {
		t.Errorf("evicted %q", m.evicted)
	}
}
