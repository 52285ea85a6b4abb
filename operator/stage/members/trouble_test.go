package members

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/volumes"
)

// TestEtcdTrouble is about an etcd whose members answer, and which is not in order.
func TestEtcdTrouble(t *testing.T) {
	for _, test := range []struct {
		what   string
		change func(*etcd.State)
		reason string // nothing is wrong when empty
		says   []string
	}{
		{"all is well", func(*etcd.State) {}, "", nil},
		{"one was full", func(s *etcd.State) { s.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "NOSPACE"}} }, "NoSpace", []string{"NOSPACE is raised by member fleet-etcd-1", "raise spec.etcd.storage.size, or remove clusters"}},
		{"one has other data", func(s *etcd.State) {
			s.Alarms = []etcd.Alarm{{MemberID: "a2", Type: "CORRUPT"}, {MemberID: "a1", Type: "NOSPACE"}}
		}, "Corrupt", []string{"CORRUPT is raised by member fleet-etcd-2", "Keep all volumes"}},
		{"an alarm that nobody knows yet", func(s *etcd.State) { s.Alarms = []etcd.Alarm{{MemberID: "a2", Type: "QUAKE"}} }, "MembersNotReady", []string{"etcd's alarm QUAKE"}},
		{"one was added and never started", func(s *etcd.State) {
			s.List = append(s.List, etcd.Listed{ID: "a3", PeerURLs: []string{"https://m3:2380"}})
		}, "MembershipDiffers", []string{"member a3 at https://m3:2380 was added to etcd but has not been started", "etcdctl member remove ID"}},
		{"one is a learner", func(s *etcd.State) { s.List[1].Learner = true }, "MembershipDiffers", []string{"member fleet-etcd-1 is a learner"}},
		{"one was removed", func(s *etcd.State) { s.List = s.List[:2] }, "MembershipDiffers", []string{"member fleet-etcd-2 with the ID a2 is recorded but no longer in etcd's list"}},
		{"the list is not known, which is another trouble", func(s *etcd.State) { s.List, s.ListErr = nil, errors.New("nobody") }, "", nil},
	} {
		s := newStage(t, "{spec: {etcd: {replicas: 3}}}")
		s.Identity.Record = &etcd.Record{Identity: etcd.Identity{ClusterID: "c", Members: map[string]string{"fleet-etcd-0": "a0", "fleet-etcd-1": "a1", "fleet-etcd-2": "a2"}}}
		for _, name := range []string{"fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2"} {
			s.found.State.List = append(s.found.State.List, etcd.Listed{ID: s.Identity.Record.Members[name], Name: name})
		}
		test.change(&s.found.State)
		v := s.etcdTrouble()
		if (v.Complete()) != (test.reason == "") || !v.Complete() && v.Reason != test.reason {
			t.Errorf("%s: %+v", test.what, v)
			continue
		}
		for _, word := range test.says {
			if !strings.Contains(v.Message, word) {
				t.Errorf("%s: it says %q, want %q", test.what, v.Message, word)
			}
		}
	}
	// What was taken over may be what is full. What has nothing to do with the quota is not
	// named.
	small := newStage(t, "{spec: {etcd: {replicas: 3, storage: {size: 100Gi, storageClassName: fast}}}}")
	small.found.State = etcd.State{Alarms: []etcd.Alarm{{MemberID: "a1", Type: "NOSPACE"}}}
	for _, test := range []struct {
		claim *corev1.PersistentVolumeClaim
		quota int64
		ends  string
	}{
		{claimOf("8Gi", "8Gi", "slow"), 0, "or remove clusters; besides: PersistentVolumeClaim data-fleet-etcd-0 has 8Gi, and spec.etcd.storage.size is 100Gi: etcd's quota follows the smallest volume and is 4096 MiB of data; it is raised when all volumes have grown"},
		{claimOf("8Gi", "8Gi", "slow"), 8 << 30, "or keep etcd's data below 4096 MiB (remove clusters, defragment each member)"},
		{claimOf("18Gi", "18Gi", "slow"), 0, "If that is not enough, raise spec.etcd.storage.size, or remove clusters"},
	} {
		small.Volumes = volumes.Volumes{Members: []corev1.PersistentVolumeClaim{*test.claim}, Quota: test.quota}
		if v := small.etcdTrouble(); v.Complete() || v.Reason != operatorv1alpha1.ReasonNoSpace || !strings.HasSuffix(v.Message, test.ends) {
			t.Errorf("an etcd on a small volume: %+v, want %q at its end", v, test.ends)
		}
	}
	// Of an external etcd no members are recorded, but its alarms count.
	s := newStage(t, "{spec: {etcd: {external: {endpoints: ['https://a:1']}}}}")
	s.found.State = etcd.State{List: []etcd.Listed{{ID: "a0", Name: "m0"}, {ID: "a1"}}, Alarms: []etcd.Alarm{{MemberID: "a0", Type: "NOSPACE"}}}
	if v := s.etcdTrouble(); v.Complete() || v.Reason != operatorv1alpha1.ReasonNoSpace {
		t.Errorf("an external etcd: %+v", v)
	}
}

// TestGuardKinds tells a member whose data is lost from one of which the guard can't know
// yet whether it may start.
func TestGuardKinds(t *testing.T) {
	for code, reason := range map[int32]string{contract.GuardRefused: operatorv1alpha1.ReasonDataLost, contract.GuardWaits: operatorv1alpha1.ReasonMembersNotReady} {
		m := newManaged(t, 3, replaced(0, 1, 2), func(m *managed) {
			m.pods[1].Status.Conditions = nil
			m.pods[1].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: operand.ComponentEtcd, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: "what the guard says"}}}}
			m.state.Members[1].Err = errors.New("no answer")
		})
		if v := m.members(t.Context()); v.Reason != reason || v.State != verdict.Degraded || !strings.Contains(v.Message, "what the guard says") {
			t.Errorf("exit code %d: %+v", code, v)
		}
	}
}

// TestNoSpace is about what the operator does automatically about a full etcd: it replaces
// members where that gives them a larger quota, and disarms the alarm when all have room.
func TestNoSpace(t *testing.T) {
	full := func(size, quota int64, raised ...string) func(*managed) {
		return func(m *managed) {
			for i := range m.state.Members {
				m.state.Members[i].DBSize, m.state.Members[i].Quota = size<<20, quota<<20
			}
			for _, kind := range raised {
				m.state.Alarms = append(m.state.Alarms, etcd.Alarm{MemberID: "a1", Type: kind})
			}
		}
	}
	down := func(m *managed) { m.state.Members[2].Err, m.state.Members[2].Quota = errors.New("it is down"), 0 }
	for _, test := range []struct {
		reason   string
		changes  []func(*managed)
		evicted  string
		disarmed int
		says     string
	}{
		{"the quota grew", []func(*managed){full(2048, 2048, "NOSPACE")}, "fleet-etcd-1", 0, "the quota grows: etcd: 0 of 3 members updated"},
		{"the quota grew, and one has it", []func(*managed){full(2048, 2048, "NOSPACE"), replaced(1), func(m *managed) { m.state.Members[1].Quota = 4 << 30 }}, "fleet-etcd-2", 0, "the quota grows"},
		{"the quota grew, and the leader is last", []func(*managed){full(2048, 2048, "NOSPACE"), replaced(1, 2)}, "", 0, "the leader fleet-etcd-0 is next, but can't hand over"},
		{"the quota grew, and a member is down", []func(*managed){full(2048, 2048, "NOSPACE"), down}, "", 0, "it stays: only 2 of 3 members are ready"},
		{"the quota grew, and the member that has it is not up yet", []func(*managed){full(2048, 2048, "NOSPACE"), replaced(2), down}, "", 0, "fleet-etcd-1 is next, but must wait: only 2 of 3 members are ready"},
		{"the quota grew, and data differs", []func(*managed){full(2048, 2048, "NOSPACE", "CORRUPT")}, "", 0, "CORRUPT"},
		{"the quota grew, and there is another alarm", []func(*managed){full(2048, 2048, "NOSPACE", "QUAKE")}, "", 0, "etcd's alarm QUAKE is raised"},
		{"the quota grew, in a paused registry", []func(*managed){full(2048, 2048, "NOSPACE"), func(m *managed) { m.Freeze("spec.paused is false") }}, "", 0, "nothing is changed now"},
		{"something else is to be changed", []func(*managed){full(4096, 4096, "NOSPACE")}, "", 0, "it stays: the file of member fleet-etcd-0 has 4096 MiB, of which 0 are in use, and its quota is 4096 MiB"},
		{"the template has changed, and its controller has not observed it yet", []func(*managed){full(2048, 2048, "NOSPACE"), func(m *managed) { m.set.Generation = 7 }}, "", 0, "raise spec.etcd.storage.size"},
		{"they are full", []func(*managed){full(3687, 4096, "NOSPACE"), replaced(0, 1, 2)}, "", 0, "it stays: the file of member fleet-etcd-0 has 3687 MiB"},
		{"they have room", []func(*managed){full(3686, 4096, "NOSPACE"), replaced(0, 1, 2)}, "", 1, "it was disarmed just now"},
		{"one is full", []func(*managed){full(100, 4096, "NOSPACE"), replaced(0, 1, 2), func(m *managed) { m.state.Members[2].DBSize = 4 << 30 }}, "", 0, "it stays: the file of member fleet-etcd-2"},
		{"one is down", []func(*managed){full(100, 4096, "NOSPACE"), replaced(0, 1, 2), down}, "", 0, "it stays: only 2 of 3 members are ready"},
		{"their quota is not known", []func(*managed){full(100, 0, "NOSPACE"), replaced(0, 1, 2)}, "", 0, "does not say what its quota is"},
		{"they have room, and data differs", []func(*managed){full(100, 4096, "NOSPACE", "CORRUPT"), replaced(0, 1, 2)}, "", 0, "CORRUPT"},
		{"they have room, and there is another alarm", []func(*managed){full(100, 4096, "NOSPACE", "QUAKE"), replaced(0, 1, 2)}, "", 0, "it stays: etcd's alarm QUAKE"},
		{"they have room, and a member was added", []func(*managed){full(100, 4096, "NOSPACE"), replaced(0, 1, 2), func(m *managed) { m.state.List = append(m.state.List, etcd.Listed{ID: "a9"}) }}, "", 0, "it stays: member a9"},
		{"they have room, in a paused registry", []func(*managed){full(100, 4096, "NOSPACE"), replaced(0, 1, 2), func(m *managed) { m.Freeze("spec.paused is false") }}, "", 0, "it is disarmed when spec.paused is false"},
		{"they have room, and etcd refuses", []func(*managed){full(100, 4096, "NOSPACE"), replaced(0, 1, 2), func(m *managed) { m.refusal = errors.New("no leader") }}, "", 1, "no leader"},
	} {
		m := newManaged(t, 3, test.changes...)
		v := m.members(t.Context())
		if v.Complete() || !strings.Contains(v.Message, test.says) || strings.Join(m.evicted, " ") != test.evicted || m.disarmed != test.disarmed {
			t.Errorf("%s: %+v, evicted %q, disarmed %d", test.reason, v, m.evicted, m.disarmed)
		}
	}
}
