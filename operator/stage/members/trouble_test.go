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
		{"one was full", func(s *etcd.State) { s.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "NOSPACE"}} }, "NoSpace", []string{"NOSPACE is raised by member fleet-etcd-1", "etcdctl alarm disarm"}},
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
	// What was taken over may be what is full. A larger quota reaches no member before
	// the alarm is disarmed, and what has nothing to do with the quota is not named.
	small := newStage(t, "{spec: {etcd: {replicas: 3, storage: {size: 100Gi, storageClassName: fast}}}}")
	small.found.State = etcd.State{Alarms: []etcd.Alarm{{MemberID: "a1", Type: "NOSPACE"}}}
	for _, test := range []struct {
		claim *corev1.PersistentVolumeClaim
		quota int64
		ends  string
	}{
		{claimOf("8Gi", "8Gi", "slow"), 0, "then disarm the alarm (etcdctl alarm disarm); after that: PersistentVolumeClaim data-fleet-etcd-0 has 8Gi, and spec.etcd.storage.size is 100Gi: etcd's quota follows the smallest volume and is 4096 MiB of data; it is raised when all volumes have grown"},
		{claimOf("8Gi", "8Gi", "slow"), 8 << 30, "or keep etcd's data below 4096 MiB (remove clusters, defragment each member)"},
		{claimOf("18Gi", "18Gi", "slow"), 0, "then disarm the alarm (etcdctl alarm disarm)"},
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
