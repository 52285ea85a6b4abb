package defragmentation

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/pass/passtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// driven is a registry whose etcd is defragmented, and what is remembered of it.
type driven struct {
	*passtest.Known
	seen  etcd.Revisions
	notes []pass.Note
}

// drive has the loop of operations come to the defragmentation.
func (s *driven) drive(t *testing.T) verdict.Verdict {
	t.Helper()
	d := &Drive{Pass: s.Pass, Revisions: &s.seen}
	if !d.Ours() {
		return verdict.Verdict{}
	}
	v := operation.Run{Pass: s.Pass}.All(t.Context(), []operation.Operation{d.Operation()})
	s.notes = d.Notes()
	return v
}

// says returns the reason that counts of what a person should know of etcd, and all of it.
func (s *driven) says() (reason, message string) {
	for _, note := range s.notes {
		if note.Condition != operatorv1alpha1.ConditionEtcdReady {
			return note.Condition, "of another condition"
		}
		reason, message = cmp.Or(reason, note.Reason), message+note.Message+"; "
	}
	return reason, message
}

// fragmented returns a complete registry with three members, of which the second has much free
// space.
func fragmented(t *testing.T) *driven {
	t.Helper()
	s := &driven{Known: passtest.New(t, "{spec: {version: v0.1.0, mode: Aggregated, etcd: {replicas: 3}}, status: {version: v0.1.0, etcdVersion: v3.6.14, etcd: {members: [{name: m0}, {name: m1}, {name: m2}]}"+operandtest.Complete+"}}")}
	recorded := etcd.Identity{ClusterID: "c", Members: map[string]string{"m0": "a0", "m1": "a1", "m2": "a2"}}
	s.Identity.Record = &etcd.Record{EtcdVersion: "v3.6.14", Identity: recorded}
	for _, name := range []string{"m0", "m1", "m2"} {
		s.Members.State.Members = append(s.Members.State.Members, etcd.Member{Name: name, ID: recorded.Members[name], ClusterID: "c", Leader: "a0", Term: 1, DBSize: 300 << 20, DBSizeInUse: 290 << 20})
		s.Members.State.List = append(s.Members.State.List, etcd.Listed{ID: recorded.Members[name], Name: name})
	}
	s.Members.State.Members[1].DBSizeInUse = 1 << 20
	s.Ready()
	return s
}

// TestDefragmentBegins is about when a defragmentation begins, and what is said of it.
func TestDefragmentBegins(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*driven)
		begins bool
	}{
		{"all is ready", func(*driven) {}, true},
		{"a server is not ready", func(s *driven) {
			s.Verdicts[operatorv1alpha1.ConditionServerReady] = verdict.Waiting("ServersNotReady", "1 of 2").DegradedIf(true)
		}, false},
		{"servers are being replaced", func(s *driven) { s.Servers.Rolling = "servers: 1 of 2 updated" }, false},
		{"members are to be replaced", func(s *driven) { s.Members.Replacing = true }, false},
		{"it is paused", func(s *driven) { s.Freeze("spec.paused is false") }, false},
		{"it was never complete", func(s *driven) { s.Registry.Status.History = nil }, false},
		{"etcd is external", func(s *driven) { s.Registry.Spec.Etcd.External = &operatorv1alpha1.ExternalEtcd{} }, false},
		{"little is free", func(s *driven) { s.Members.State.Members[1].DBSizeInUse = 290 << 20 }, false},
	} {
		s := fragmented(t)
		test.change(s)
		v := s.drive(t)
		if o := s.Registry.Status.Operation; (o != nil) != test.begins || test.begins && (o.Type != operatorv1alpha1.OperationDefragmentation || o.Phase != operatorv1alpha1.PhasePreflight || v.Complete()) {
			t.Errorf("%s: %+v, %+v", test.reason, o, v)
		}
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
		change       func(*driven)
		begins       bool
		want, says   string
		within, from time.Duration
	}{
		{"no window", func(*driven) {}, true, "", "", 0, 0},
		{"it is open", func(s *driven) { s.Registry.Spec.Etcd.MaintenanceWindow = window("* * * * *", "") }, true, "", "", 0, 0},
		{"it opens later", func(s *driven) {
			s.Registry.Spec.Etcd.MaintenanceWindow = window(s.Now.Add(2*time.Hour).UTC().Format("4 15 * * *"), "")
		}, false, "DefragmentationPending", "much of the file is free of m1, to be defragmented in the maintenance window, which opens next at ", 2 * time.Hour, time.Hour},
		{"nothing waits for it", func(s *driven) {
			s.Registry.Spec.Etcd.MaintenanceWindow = window(s.Now.Add(2*time.Hour).UTC().Format("4 15 * * *"), "")
			s.Members.State.Members[1].DBSizeInUse = 290 << 20
		}, false, "", "", 0, 0},
		{"a time zone that there is not", func(s *driven) { s.Registry.Spec.Etcd.MaintenanceWindow = window("0 2 * * *", "Europe/Atlantis") }, false, "MaintenanceWindowInvalid", `timeZone "Europe/Atlantis" is not known`, 0, 0},
		{"nonsense", func(s *driven) { s.Registry.Spec.Etcd.MaintenanceWindow = window("TZ=", "") }, false, "MaintenanceWindowInvalid", `spec.etcd.maintenanceWindow.schedule "TZ="`, 0, 0},
		{"nonsense, in a paused registry", func(s *driven) {
			s.Registry.Spec.Etcd.MaintenanceWindow = window("", "")
			s.Freeze("spec.paused is false")
		}, false, "MaintenanceWindowInvalid", "until then no etcd member is defragmented", 0, 0},
	} {
		s := fragmented(t)
		test.change(s)
		v := s.drive(t)
		reason, message := s.says()
		if reason != test.want || !strings.Contains(message, test.says) || (s.Registry.Status.Operation != nil) != test.begins {
			t.Errorf("%s: %s: %s, %+v", test.reason, reason, message, s.Registry.Status.Operation)
		}
		if after := v.After; !test.begins && (after > test.within || after < test.from) {
			t.Errorf("%s: it is reconciled after %s", test.reason, after)
		}
	}
}

// TestDefragmentRequest is about what a person asks for by an annotation.
func TestDefragmentRequest(t *testing.T) {
	for _, test := range []struct {
		reason, request string
		change          func(*driven)
		begins          bool
		want, says      string
		within          time.Duration
	}{
		{"of all", "-1m", func(*driven) {}, true, "", "", 0},
		{"of one", "-1m,m2", func(*driven) {}, true, "", "", 0},
		{"of one that there is not", "-1m,m7", func(*driven) {}, false, "DefragmentationRequestInvalid", `the annotation operator.clusterregistry.io/defragment is not followed: etcd has no member "m7"`, 0},
		{"nonsense", "please", func(*driven) {}, false, "DefragmentationRequestInvalid", `"please" is not a time`, 0},
		{"of the day before yesterday", "-25h", func(*driven) {}, false, "", "", 0},
		{"later", "1m", func(*driven) {}, false, "DefragmentationPending", "a person has asked for m0, m1, m2 to be defragmented at ", time.Minute},
		{"in a paused registry", "-1m,m2", func(s *driven) { s.Freeze("spec.paused is false") }, false, "DefragmentationPending", "a person has asked for m2 to be defragmented, which begins when", 0},
	} {
		s := fragmented(t)
		s.Members.State.Members[1].DBSizeInUse = 290 << 20
		at, member, _ := strings.Cut(test.request, ",")
		request := at
		if after, err := time.ParseDuration(at); err == nil {
			request = contract.DefragmentRequest{Time: s.Now.Add(after), Member: member}.String()
		}
		s.Registry.Annotations = map[string]string{operatorv1alpha1.AnnotationDefragment: request}
		test.change(s)
		v := s.drive(t)
		reason, message := s.says()
		if reason != test.want || !strings.Contains(message, test.says) || (s.Registry.Status.Operation != nil) != test.begins {
			t.Errorf("%s: %s: %s, %+v", test.reason, reason, message, s.Registry.Status.Operation)
		}
		if after := v.After; !test.begins && after > test.within {
			t.Errorf("%s: it is reconciled after %s", test.reason, after)
		}
	}
}

// full makes a registry's etcd one that is full of what could be compacted.
func full(s *driven) {
	for i := range s.Members.State.Members {
		m := &s.Members.State.Members[i]
		m.Quota, m.DBSize, m.DBSizeInUse, m.Revision = 300<<20, 300<<20, 290<<20, 1000
	}
	s.Members.State.Alarms = []etcd.Alarm{{MemberID: "a0", Type: etcd.AlarmNoSpace}}
	s.Verdicts[operatorv1alpha1.ConditionEtcdReady] = verdict.Waiting(operatorv1alpha1.ReasonNoSpace, "it is full").DegradedIf(true)
}

// TestDefragmentFull is about an etcd that is full: the operator makes room at once, and
// remembers from when it ran before at which revision etcd was.
func TestDefragmentFull(t *testing.T) {
	for _, test := range []struct {
		reason  string
		change  func(*driven)
		begins  bool
		upgrade bool // stays
	}{
		{"as it is", func(*driven) {}, true, false},
		{"a server is not ready", func(s *driven) {
			s.Verdicts[operatorv1alpha1.ConditionServerReady] = verdict.Waiting("ReplicasNotReady", "1 of 2")
		}, true, false},
		{"members get a larger quota", func(s *driven) { s.Members.Replacing = true }, false, false},
		{"it is paused", func(s *driven) { s.Freeze("spec.paused is false") }, false, false},
		{"the last compaction is of now", func(s *driven) {
			s.Registry.Status.Etcd.Compaction = &operatorv1alpha1.EtcdCompaction{Revision: 1000, CompletionTime: &metav1.Time{Time: s.Now}}
			for i := range s.Registry.Status.Etcd.Members {
				s.Registry.Status.Etcd.Members[i].DefragmentedTime = &metav1.Time{Time: s.Now}
			}
		}, false, false},
		{"an upgrade has touched nothing yet", func(s *driven) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade, Phase: operatorv1alpha1.PhasePreflight}
		}, true, false},
		{"an upgrade has touched nothing yet, and nothing can be done", func(s *driven) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade, Phase: operatorv1alpha1.PhasePreflight}
			s.Members.State.Members[0].Err = errors.New("down")
		}, false, true},
		{"a change of members has touched nothing yet", func(s *driven) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationScale, Phase: operatorv1alpha1.PhasePreflight}
		}, true, false},
		{"a change of members rests between two", func(s *driven) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationScale, Phase: operatorv1alpha1.PhaseServerEndpoints}
		}, true, false},
		{"a rotation has begun", func(s *driven) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, Phase: operatorv1alpha1.PhaseIssuance}
		}, true, false},
		{"a change of members has begun", func(s *driven) {
			s.Identity.Record.Joining = "m2"
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationScale, Phase: operatorv1alpha1.PhaseMemberAddition}
		}, false, false},
		{"an upgrade has begun", func(s *driven) {
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade, Phase: operatorv1alpha1.PhaseServer}
		}, false, true},
	} {
		s := fragmented(t)
		full(s)
		test.change(s)
		d, v := &Drive{Pass: s.Pass, Revisions: &s.seen}, verdict.Verdict{}
		ended, besides := d.GiveWay()
		if ended && s.Registry.Status.Operation != nil {
			t.Errorf("%s: %+v has ended", test.reason, s.Registry.Status.Operation)
		}
		if !s.Upgrading() {
			v = s.drive(t)
		}
		o := s.Registry.Status.Operation
		if begins := o != nil && o.Type == operatorv1alpha1.OperationDefragmentation; begins != test.begins || s.Upgrading() != test.upgrade {
			t.Errorf("%s: %+v, %+v", test.reason, o, v)
		}
		if says := strings.Contains(besides, "the operation Upgrade that is under way"); says != (test.reason == "an upgrade has begun") {
			t.Errorf("%s: it says %q", test.reason, besides)
		}
	}
	s := fragmented(t)
	s.Members.State.Members[1].DBSizeInUse = 290 << 20
	for i := range s.Members.State.Members {
		s.Members.State.Members[i].Revision = 900
	}
	began := s.Now
	s.drive(t)
	s.Now = began.Add(etcd.History)
	full(s)
	if handler := (&Drive{Pass: s.Pass, Revisions: &s.seen}).handler(); handler.Old.Revision != 900 || !handler.Old.Time.Equal(began) {
		t.Errorf("it remembers %+v", handler.Old)
	}
}
