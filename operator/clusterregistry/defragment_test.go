package clusterregistry

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// fragmented returns a look at a complete registry with three members, of which the second
// has much free space, and with an operation in YAML if there is one.
func fragmented(t *testing.T, version, operation string) *scope {
	t.Helper()
	s := look(t, "{spec: {version: "+version+", mode: Aggregated, etcd: {replicas: 3}}, status: {version: v0.1.0, etcdVersion: v3.6.14, etcd: {members: [{name: m0}, {name: m1}, {name: m2}]}"+operation+
		", history: [{version: v0.1.0, state: Completed, startTime: null}]}}")
	recorded := etcd.Identity{ClusterID: "c", Members: map[string]string{"m0": "a0", "m1": "a1", "m2": "a2"}}
	s.Identity.Record = &etcd.Record{EtcdVersion: "v3.6.14", Identity: recorded}
	for _, name := range []string{"m0", "m1", "m2"} {
		s.Members.State.Members = append(s.Members.State.Members, etcd.Member{Name: name, ID: recorded.Members[name], ClusterID: "c", Leader: "a0", Term: 1, DBSize: 300 << 20, DBSizeInUse: 290 << 20})
		s.Members.State.List = append(s.Members.State.List, etcd.Listed{ID: recorded.Members[name], Name: name})
	}
	s.Members.State.Members[1].DBSizeInUse = 1 << 20
	for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
		s.record(kind, done)
	}
	return s
}

// defragment has the loop come to the defragmentation, which is the last one.
func defragment(t *testing.T, r *Reconciler, s *scope) verdict.Verdict {
	t.Helper()
	all := r.operations(s)
	if last := all[len(all)-1]; slices.Contains(last.Types, operatorv1alpha1.OperationDefragmentation) {
		return s.driver().All(t.Context(), []operation.Operation{last})
	}
	return done
}

// TestDefragmentBegins is about when a defragmentation begins, and what is said of it.
func TestDefragmentBegins(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*scope)
		begins bool
	}{
		{"all is ready", func(*scope) {}, true},
		{"a server is not ready", func(s *scope) {
			s.record(operatorv1alpha1.ConditionServerReady, verdict.Waiting("ServersNotReady", "1 of 2").DegradedIf(true))
		}, false},
		{"servers are being replaced", func(s *scope) { s.Servers.Rolling = "servers: 1 of 2 updated" }, false},
		{"members are to be replaced", func(s *scope) { s.Members.Replacing = true }, false},
		{"it is paused", func(s *scope) { s.Freeze("spec.paused is false") }, false},
		{"it was never complete", func(s *scope) { s.Registry.Status.History = nil }, false},
		{"etcd is external", func(s *scope) { s.Registry.Spec.Etcd.External = &operatorv1alpha1.ExternalEtcd{} }, false},
		{"little is free", func(s *scope) { s.Members.State.Members[1].DBSizeInUse = 290 << 20 }, false},
	} {
		s := fragmented(t, "v0.1.0", "")
		test.change(s)
		s.operation = defragment(t, reading(t, s), s)
		if o := s.Registry.Status.Operation; (o != nil) != test.begins || test.begins && (o.Type != operatorv1alpha1.OperationDefragmentation || o.Phase != operatorv1alpha1.PhasePreflight || s.operation.Complete()) {
			t.Errorf("%s: %+v, %+v", test.reason, o, s.operation)
		}
	}
}

// TestDefragmentAndUpgrade has an upgrade wait for a member that is being defragmented, and
// come first otherwise.
func TestDefragmentAndUpgrade(t *testing.T) {
	for phase, waits := range map[string]bool{"Preflight": false, "Defragmentation": true} {
		s := fragmented(t, "v0.2.0", ", operation: {type: Defragmentation, to: m1, phase: "+phase+", phaseStartedTime: null}")
		s.Registry.Status.Operation.PhaseStartedTime = metav1.NewTime(s.Now)
		v := s.plan(released)
		if waits != strings.Contains(v.Message, "the upgrade to v0.2.0 starts when the defragmentation of etcd is complete (the condition Progressing says what is awaited); v0.1.0 keeps running") || waits != (v.Reason == operatorv1alpha1.ReasonOperationInProgress) || waits != (s.upgrade == nil) {
			t.Errorf("%s: %+v, %+v", phase, v, s.Registry.Status.Operation)
		}
		if s.Release.Version != "v0.1.0" {
			t.Errorf("%s: it renders %s", phase, s.Release.Version)
		}
	}
	s := fragmented(t, "v0.1.0", ", operation: {type: Defragmentation, to: m1, phase: Defragmentation, phaseStartedTime: null}")
	if v := s.plan(released); !v.Complete() || s.upgrade != nil {
		t.Errorf("without an upgrade: %+v", v)
	}
	s.operation = verdict.Waiting(string(operatorv1alpha1.PhaseDefragmentation), "m1 is through")
	if c := s.progressing(nil); c.Status != metav1.ConditionTrue || c.Reason != string(operatorv1alpha1.PhaseDefragmentation) {
		t.Errorf("it says %+v", c)
	}
	if message := s.well(operatorv1alpha1.ConditionVersionSupported); message != "v0.1.0 is supported on Kubernetes v1.37.1" {
		t.Errorf("it says %q", message)
	}
}

// TestMaintenanceWindow is about what EtcdReady, which stays True, says of the maintenance
// window, and that the registry is reconciled when it opens.
func TestMaintenanceWindow(t *testing.T) {
	window := func(schedule, zone string) *operatorv1alpha1.MaintenanceWindow {
		return &operatorv1alpha1.MaintenanceWindow{Schedule: schedule, Duration: metav1.Duration{Duration: time.Hour}, TimeZone: zone}
	}
	for _, test := range []struct {
		reason       string
		change       func(*scope)
		begins       bool
		want, says   string
		within, from time.Duration
	}{
		{"no window", func(*scope) {}, true, "Ready", "etcd members ready", 0, 0},
		{"it is open", func(s *scope) { s.Registry.Spec.Etcd.MaintenanceWindow = window("* * * * *", "") }, true, "Ready", "etcd members ready", 0, 0},
		{"it opens later", func(s *scope) {
			s.Registry.Spec.Etcd.MaintenanceWindow = window(s.Now.Add(2*time.Hour).UTC().Format("4 15 * * *"), "")
		}, false, "DefragmentationPending", "much of the file is free of m1, to be defragmented in the maintenance window, which opens next at ", 2 * time.Hour, time.Hour},
		{"nothing waits for it", func(s *scope) {
			s.Registry.Spec.Etcd.MaintenanceWindow = window(s.Now.Add(2*time.Hour).UTC().Format("4 15 * * *"), "")
			s.Members.State.Members[1].DBSizeInUse = 290 << 20
		}, false, "Ready", "etcd members ready", 0, 0},
		{"a time zone that there is not", func(s *scope) { s.Registry.Spec.Etcd.MaintenanceWindow = window("0 2 * * *", "Europe/Atlantis") }, false, "MaintenanceWindowInvalid", `timeZone "Europe/Atlantis" is not known`, 0, 0},
		{"nonsense, and something else to know", func(s *scope) {
			s.Registry.Spec.Etcd.MaintenanceWindow = window("TZ=", "")
			s.record(operatorv1alpha1.ConditionEtcdReady, done.Note("VolumesGrowing", "they grow"))
		}, false, "VolumesGrowing", `they grow; spec.etcd.maintenanceWindow.schedule "TZ="`, 0, 0},
		{"nonsense, in a paused registry", func(s *scope) {
			s.Registry.Spec.Etcd.MaintenanceWindow = window("", "")
			s.Freeze("spec.paused is false")
		}, false, "MaintenanceWindowInvalid", "until then no etcd member is defragmented", 0, 0},
	} {
		s := fragmented(t, "v0.1.0", "")
		test.change(s)
		s.operation = defragment(t, reading(t, s), s)
		c := s.condition(operatorv1alpha1.ConditionEtcdReady, "")
		if c.Status != metav1.ConditionTrue || c.Reason != test.want || !strings.Contains(c.Message, test.says) || (s.Registry.Status.Operation != nil) != test.begins {
			t.Errorf("%s: %+v, %+v", test.reason, c, s.Registry.Status.Operation)
		}
		if after := s.operation.After; !test.begins && (after > test.within || after < test.from) {
			t.Errorf("%s: it is reconciled after %s", test.reason, after)
		}
	}
}

// TestDefragmentRequest is about what a person asks for by an annotation.
func TestDefragmentRequest(t *testing.T) {
	for _, test := range []struct {
		reason, request string
		change          func(*scope)
		begins          bool
		want, says      string
		within          time.Duration
	}{
		{"of all", "-1m", func(*scope) {}, true, "Ready", "", 0},
		{"of one", "-1m,m2", func(*scope) {}, true, "Ready", "", 0},
		{"of one that there is not", "-1m,m7", func(*scope) {}, false, "DefragmentationRequestInvalid", `the annotation operator.clusterregistry.io/defragment is not followed: etcd has no member "m7"`, 0},
		{"nonsense", "please", func(*scope) {}, false, "DefragmentationRequestInvalid", `"please" is not a time`, 0},
		{"of the day before yesterday", "-25h", func(*scope) {}, false, "Ready", "", 0},
		{"later", "1m", func(*scope) {}, false, "DefragmentationPending", "a person has asked for m0, m1, m2 to be defragmented at ", time.Minute},
		{"in a paused registry", "-1m,m2", func(s *scope) { s.Freeze("spec.paused is false") }, false, "DefragmentationPending", "a person has asked for m2 to be defragmented, which begins when", 0},
	} {
		s := fragmented(t, "v0.1.0", "")
		s.Members.State.Members[1].DBSizeInUse = 290 << 20
		at, member, _ := strings.Cut(test.request, ",")
		request := at
		if after, err := time.ParseDuration(at); err == nil {
			request = contract.DefragmentRequest{Time: s.Now.Add(after), Member: member}.String()
		}
		s.Registry.Annotations = map[string]string{operatorv1alpha1.AnnotationDefragment: request}
		test.change(s)
		s.operation = defragment(t, reading(t, s), s)
		c := s.condition(operatorv1alpha1.ConditionEtcdReady, "")
		if c.Status != metav1.ConditionTrue || c.Reason != test.want || !strings.Contains(c.Message, test.says) || (s.Registry.Status.Operation != nil) != test.begins {
			t.Errorf("%s: %+v, %+v", test.reason, c, s.Registry.Status.Operation)
		}
		if after := s.operation.After; !test.begins && after > test.within {
			t.Errorf("%s: it is reconciled after %s", test.reason, after)
		}
	}
}

// full makes a registry's etcd one that is full of what could be compacted.
func full(s *scope) {
	for i := range s.Members.State.Members {
		m := &s.Members.State.Members[i]
		m.Quota, m.DBSize, m.DBSizeInUse, m.Revision = 300<<20, 300<<20, 290<<20, 1000
	}
	s.Members.State.Alarms = []etcd.Alarm{{MemberID: "a0", Type: etcd.AlarmNoSpace}}
	s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Waiting(operatorv1alpha1.ReasonNoSpace, "it is full").DegradedIf(true))
}

// TestDefragmentFull is about an etcd that is full: the operator makes room at once, and
// remembers from when it ran before at which revision etcd was.
func TestDefragmentFull(t *testing.T) {
	for _, test := range []struct {
		reason  string
		change  func(*scope)
		begins  bool
		upgrade bool // stays
	}{
		{"as it is", func(*scope) {}, true, false},
		{"a server is not ready", func(s *scope) {
			s.record(operatorv1alpha1.ConditionServerReady, verdict.Waiting("ReplicasNotReady", "1 of 2"))
		}, true, false},
		{"members get a larger quota", func(s *scope) { s.Members.Replacing = true }, false, false},
		{"it is paused", func(s *scope) { s.Freeze("spec.paused is false") }, false, false},
		{"the last compaction is of now", func(s *scope) {
			s.Registry.Status.Etcd.Compaction = &operatorv1alpha1.EtcdCompaction{Revision: 1000, CompletionTime: &metav1.Time{Time: s.Now}}
			for i := range s.Registry.Status.Etcd.Members {
				s.Registry.Status.Etcd.Members[i].DefragmentedTime = &metav1.Time{Time: s.Now}
			}
		}, false, false},
		{"an upgrade has touched nothing yet", func(s *scope) { s.upgradeIn(operatorv1alpha1.PhasePreflight) }, true, false},
		{"an upgrade has touched nothing yet, and nothing can be done", func(s *scope) {
			s.upgradeIn(operatorv1alpha1.PhasePreflight)
			s.Members.State.Members[0].Err = errors.New("down")
		}, false, true},
		{"a change of members has touched nothing yet", func(s *scope) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationScale, Phase: operatorv1alpha1.PhasePreflight}
		}, true, false},
		{"a change of members rests between two", func(s *scope) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationScale, Phase: operatorv1alpha1.PhaseServerEndpoints}
		}, true, false},
		{"a rotation has begun", func(s *scope) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, Phase: operatorv1alpha1.PhaseIssuance}
		}, true, false},
		{"a change of members has begun", func(s *scope) {
			s.Identity.Record.Joining = "m2"
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationScale, Phase: operatorv1alpha1.PhaseMemberAddition}
		}, false, false},
		{"an upgrade has begun", func(s *scope) { s.upgradeIn(operatorv1alpha1.PhaseServer) }, false, true},
	} {
		s := fragmented(t, "v0.1.0", "")
		full(s)
		test.change(s)
		r := reading(t, s)
		if r.giveWay(s); s.upgrade == nil {
			s.operation = defragment(t, r, s)
		}
		o := s.Registry.Status.Operation
		if begins := o != nil && o.Type == operatorv1alpha1.OperationDefragmentation; begins != test.begins || (s.upgrade != nil) != test.upgrade {
			t.Errorf("%s: %+v, %+v", test.reason, o, s.operation)
		}
		if says := strings.Contains(s.verdicts[operatorv1alpha1.ConditionEtcdReady].Message, "the operation Upgrade that is under way"); says != (test.reason == "an upgrade has begun") {
			t.Errorf("%s: it says %+v", test.reason, s.verdicts[operatorv1alpha1.ConditionEtcdReady])
		}
	}
	s := fragmented(t, "v0.1.0", "")
	r := reading(t, s)
	s.Members.State.Members[1].DBSizeInUse = 290 << 20
	for i := range s.Members.State.Members {
		s.Members.State.Members[i].Revision = 900
	}
	began := s.Now
	defragment(t, r, s)
	s.Now = began.Add(etcd.History)
	full(s)
	if handler := r.defragmentation(s); handler.Old.Revision != 900 || !handler.Old.Time.Equal(began) {
		t.Errorf("it remembers %+v", handler.Old)
	}
	if err := r.sweep(t.Context(), client.ObjectKeyFromObject(s.Registry)); err != nil {
		t.Fatal(err)
	}
	if handler := r.defragmentation(s); handler.Old.Revision != 0 {
		t.Errorf("of one that is gone it remembers %+v", handler.Old)
	}
}

// TestFullAndUpgrade has an upgrade wait until etcd has room, also before that is observed.
func TestFullAndUpgrade(t *testing.T) {
	s := fragmented(t, "v0.2.0", ", operation: {type: Defragmentation, phase: Preflight, phaseStartedTime: null}")
	s.Before.Conditions = []metav1.Condition{{Type: operatorv1alpha1.ConditionEtcdReady, Status: "False", Reason: operatorv1alpha1.ReasonNoSpace}}
	if v := s.plan(released); v.Reason != operatorv1alpha1.ReasonOperationInProgress || s.upgrade != nil || !s.isDefragmented() {
		t.Errorf("%+v, %+v", v, s.Registry.Status.Operation)
	}
}

// upgradeIn has an upgrade under way in a phase.
func (s *scope) upgradeIn(phase operatorv1alpha1.OperationPhase) {
	s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade, Phase: phase}
	s.upgrade = &upgrade.Upgrade{Operation: s.Registry.Status.Operation}
}
