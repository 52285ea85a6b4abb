package clusterregistry

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/verdict"
)

// upgrading returns a look at a registry that is on its way.
func upgrading(t *testing.T, from, to, phase, spec string) *scope {
	t.Helper()
	s := look(t, "{spec: {version: "+to+", mode: Aggregated, etcd: {replicas: 3}"+spec+"}, status: {version: "+from+", etcdVersion: v3.6.14,"+
		"operation: {type: Upgrade, from: "+from+", to: "+to+", phase: "+phase+", phaseStartedTime: null},"+
		"history: [{version: "+to+", state: Progressing, startTime: null, snapshot: s1, snapshotRevision: 42}, {version: "+from+", state: Completed, startTime: null}]}}")
	s.Registry.Status.Operation.PhaseStartedTime = metav1.NewTime(s.Now)
	return s
}

// TestSingleMember is told beforehand that it will be down, unless it has what the
// upgrade brings: it stayed with that when an earlier one was given up.
func TestSingleMember(t *testing.T) {
	for running, down := range map[string]bool{"v3.6.14": true, "v3.7.3": false} {
		s := upgrading(t, "v0.2.0", "v0.3.0", "Snapshot", "")
		s.Registry.Spec.Etcd.Replicas, s.Before.Etcd.Members = 1, []operatorv1alpha1.EtcdMember{{Name: "a", Version: running}}
		if v := s.plan(released); !v.Complete() {
			t.Fatalf("%s: %+v", running, v)
		}
		if v := reading(t, s).upgrade(s).Handler().Waiting("starts"); strings.Contains(v.Message, "the registry is unavailable") != down {
			t.Errorf("%s: %s", running, v.Message)
		}
	}
}

// TestAdvance says what follows which phase, and when.
func TestAdvance(t *testing.T) {
	ok := func(*scope) {}
	failing := func(s *scope) { s.Servers.Failure = errors.New("pod x: container server ended") }
	for _, test := range []struct {
		reason, from, to, phase, spec string
		with                          func(*scope)
		phaseThen, state, hold, says  string
	}{
		{"all is well", "v0.1.0", "v0.2.0", "Preflight", "", ok, "Snapshot", "Progressing", "Snapshot", "starts"},
		{"something is not", "v0.1.0", "v0.2.0", "Preflight", "", func(s *scope) { s.record("ServerReady", verdict.Waiting("X", "1 of 2")) }, "Preflight", "Progressing", "Preflight", "starts when ServerReady is True: 1 of 2"},
		{"an alarm", "v0.1.0", "v0.2.0", "Preflight", "", func(s *scope) { s.Members.State.Alarms = []etcd.Alarm{{Type: "NOSPACE"}} }, "Preflight", "Progressing", "Preflight", "starts when etcd is healthy: etcd's alarm NOSPACE"},
		{"no room", "v0.1.0", "v0.2.0", "Preflight", "", func(s *scope) { s.Members.State.Members[2].DBSize = 4 << 30 }, "Preflight", "Progressing", "Preflight", "takes 4096 of 4096 MiB"},
		{"paused before it touches anything", "v0.1.0", "v0.2.0", "Preflight", ", paused: true", ok, "Preflight", "Progressing", "Paused", "Preflight completed; Snapshot starts when spec.paused is false"},
		{"members are replaced", "v0.2.0", "v0.3.0", "Etcd", "", func(s *scope) { s.Registry.Status.Etcd.Members[0].Version = "v3.7.3" }, "Etcd", "Progressing", "Etcd", "etcd 1/3 members on v3.7.3"},
		{"servers come", "v0.1.0", "v0.2.0", "Server", "", func(s *scope) { s.record("ServerReady", verdict.Waiting("X", "one ends")) }, "Server", "Progressing", "Server", "servers 0/2 on v0.2.0; one ends"},
		{"servers have come", "v0.1.0", "v0.2.0", "Server", "", func(s *scope) { s.Registry.Status.Version = "v0.2.0" }, "Verification", "Progressing", "Verification", "starts"},
		{"servers don't come: those of before do", "v0.1.0", "v0.2.0", "Server", "", failing, "Rollback", "Progressing", "Rollback", "the servers of v0.2.0 do not become ready: pod x"},
		{"paused is for later", "v0.1.0", "v0.2.0", "Server", ", paused: true", failing, "Rollback", "Progressing", "Rollback", "pod x"},
		{"servers don't come, and those of before can't", "v0.3.0", "v0.4.0", "Server", "", failing, "Server", "Progressing", "UpgradeBlocked", "snapshot s1 (revision 42) in PersistentVolumeClaim fleet-snapshots"},
		{"they are back", "v0.1.0", "v0.2.0", "Rollback", "", func(s *scope) { s.upgrade.Message = "no image" }, "", "RolledBack", "", ""},
		{"they are back, since a person wanted it", "v0.1.0", "v0.2.0", "Rollback", "", ok, "", "Abandoned", "", ""},
		{"it does not serve, for now", "v0.1.0", "v0.2.0", "Verification", "", func(s *scope) { s.record("APIServiceReady", verdict.Waiting("X", "not available")) }, "Verification", "Progressing", "Verification", "APIServiceReady is not True: not available"},
		{"members hold the same data before they are touched, as far as can be told", "v0.1.0", "v0.2.0", "Preflight", "", func(s *scope) { s.Members.Access.Endpoints = map[string]string{"fleet-etcd-0": "http://no-tls"} }, "Preflight", "Progressing", "Preflight", "starts when the etcd members are verified to hold the same data: member fleet-etcd-0"},
		{"it has not begun yet", "v0.1.0", "v0.2.0", "Preflight", "", func(s *scope) { s.Before.Operation = nil }, "Preflight", "Progressing", "Preflight", "starts"},
		{"it was told to return just now", "v0.1.0", "v0.2.0", "Rollback", "", func(s *scope) { s.Before.Operation.Phase = "Server" }, "Rollback", "Progressing", "Rollback", "starts"},
	} {
		s := upgrading(t, test.from, test.to, test.phase, test.spec)
		if v := s.plan(released); !v.Complete() {
			t.Fatalf("%s: %+v", test.reason, v)
		}
		s.Identity.Record = &etcd.Record{Release: test.to, Identity: etcd.Identity{ClusterID: "c", Members: map[string]string{"fleet-etcd-0": "a0", "fleet-etcd-1": "a1", "fleet-etcd-2": "a2"}}}
		for name, id := range s.Identity.Record.Members {
			s.Members.State.Members = append(s.Members.State.Members, etcd.Member{Name: name, ID: id, ClusterID: "c", Leader: "a0", Term: 1, Version: "3.6.14"})
			s.Members.State.List = append(s.Members.State.List, etcd.Listed{ID: id, Name: name})
			s.Registry.Status.Etcd.Members = append(s.Registry.Status.Etcd.Members, operatorv1alpha1.EtcdMember{Name: name, Version: "v3.6.14"})
		}
		test.with(s)
		r := reading(t, s)
		recorder := events.NewFakeRecorder(1)
		s.Events = recorder
		v := r.advance(t.Context(), s)
		phase := ""
		if s.upgrade != nil {
			phase = string(s.upgrade.Phase)
		}
		if v.Complete() != (phase == "") || v.After == 0 && phase == "" || v.Reason != test.hold || !strings.Contains(v.Message, test.says) || phase != test.phaseThen || string(history.Last(s.Registry).State) != test.state {
			t.Errorf("%s: %+v in phase %q, state %s", test.reason, v, phase, history.Last(s.Registry).State)
		}
		if phase == "" {
			want := "the upgrade from " + test.from + " to " + test.to + map[string]string{"RolledBack": " was rolled back: no image", "Abandoned": " was abandoned"}[test.state]
			if event := <-recorder.Events; !strings.HasSuffix(event, want) {
				t.Errorf("%s: event %q, want %q", test.reason, event, want)
			}
		}
		s.found[operatorv1alpha1.ConditionProgressing] = v
		conditions := s.conditions()
		progressing := meta.FindStatusCondition(conditions, operatorv1alpha1.ConditionProgressing)
		if phase != "" && (progressing.Reason != test.hold || !strings.HasPrefix(progressing.Message, test.from+" -> "+test.to+": ") || meta.IsStatusConditionTrue(conditions, operatorv1alpha1.ConditionReady)) {
			t.Errorf("%s: conditions %+v", test.reason, conditions)
		}
	}
}

// TestPauseInThePhases says when a paused registry may be changed.
func TestPauseInThePhases(t *testing.T) {
	for phase, frozen := range map[string]bool{"Preflight": true, "Snapshot": false, "Etcd": false, "Server": false, "Rollback": false} {
		s := upgrading(t, "v0.1.0", "v0.2.0", phase, ", paused: true")
		if v := s.plan(released); !v.Complete() {
			t.Fatal(v)
		}
		if (s.PausedUntil() != "") != frozen {
			t.Errorf("%s: paused %v", phase, s.PausedUntil())
		}
		s.upgrade.PhaseCompleted = true
		if s.PausedUntil() == "" {
			t.Errorf("%s is complete: not paused", phase)
		}
	}
}

// TestResumed is about an upgrade that was paused, for weeks perhaps.
func TestResumed(t *testing.T) {
	for phase, test := range map[string]struct {
		then string
		why  string
	}{
		"Preflight":    {"Preflight", "what was in order may not be now"},
		"Snapshot":     {"Preflight", "the snapshot lacks what was written since"},
		"Etcd":         {"Preflight", "no server was touched yet, and the snapshot is what is left when none can go back"},
		"Server":       {"Server", "servers may have failed since"},
		"Verification": {"Verification", "it may not serve any more"},
	} {
		s := upgrading(t, "v0.2.0", "v0.3.0", phase, "")
		s.Registry.Status.Operation.PhaseCompleted, s.Registry.Status.Operation.Snapshot = true, "old"
		s.Before = *s.Registry.Status.DeepCopy()
		if phase == "Etcd" {
			s.Before.Etcd.Members = []operatorv1alpha1.EtcdMember{{Name: "fleet-etcd-0", Version: "v3.7.3"}}
		}
		if v := s.plan(released); !v.Complete() {
			t.Fatal(v)
		}
		s.Aggregation = verdict.Waiting(operatorv1alpha1.ReasonAggregationNotAllowed, "not here")
		if v := reading(t, s).advance(t.Context(), s); v.Complete() || string(s.upgrade.Phase) != phase || !s.upgrade.PhaseCompleted {
			t.Errorf("%s: it goes on where nothing may be changed: %+v", phase, v)
		}
		s.Aggregation = done
		v := reading(t, s).advance(t.Context(), s)
		if v.Complete() || string(s.upgrade.Phase) != test.then || s.upgrade.PhaseCompleted {
			t.Errorf("%s: %s: it goes on in %s (complete: %t): %+v", phase, test.why, s.upgrade.Phase, s.upgrade.PhaseCompleted, v)
		}
		if phase != "Etcd" {
			continue
		}
		// Members that run the new etcd keep it, although the upgrade begins again.
		again := upgrading(t, "v0.2.0", "v0.3.0", "Preflight", "")
		again.Before.Etcd = s.Before.Etcd
		if v := again.plan(released); !v.Complete() || again.Release.Members.Etcd != "v3.7.3" || again.Release.Members.Helper != "v0.3.0" || again.Release.Version != "v0.2.0" {
			t.Errorf("it renders %+v, %+v", again.Release, v)
		}
	}
}
