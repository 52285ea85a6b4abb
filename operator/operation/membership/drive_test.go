package membership

import (
	"errors"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass/passtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// ofThree returns a complete registry that is ready, with three members.
func ofThree(t *testing.T) *passtest.Known {
	t.Helper()
	s := passtest.New(t, "{spec: {version: v0.1.0, mode: Aggregated, etcd: {replicas: 3}}, status: {version: v0.1.0, etcdVersion: v3.6.14, etcd: {members: [{name: m0}, {name: m1}, {name: m2}]}"+operandtest.Complete+"}}")
	recorded := etcd.Identity{ClusterID: "c", Members: map[string]string{"m0": "a0", "m1": "a1", "m2": "a2"}}
	s.Identity.Record = &etcd.Record{EtcdVersion: "v3.6.14", Identity: recorded}
	for _, name := range []string{"m0", "m1", "m2"} {
		s.Members.State.Members = append(s.Members.State.Members, etcd.Member{Name: name, ID: recorded.Members[name], ClusterID: "c", Leader: "a0", Term: 1})
		s.Members.State.List = append(s.Members.State.List, etcd.Listed{ID: recorded.Members[name], Name: name})
	}
	s.Ready()
	return s
}

// TestMembersBegin is about when a change of etcd's members becomes an operation.
func TestMembersBegin(t *testing.T) {
	scale, replace := plan.Step{Action: plan.RecordTarget, Ordinal: plan.None, Size: 5}, plan.Step{Action: plan.RecordLeaving, Ordinal: 1}
	for _, test := range []struct {
		reason string
		step   plan.Step
		change func(*passtest.Known)
		begins operatorv1alpha1.OperationType
		says   string
	}{
		{"more members", scale, func(*passtest.Known) {}, operatorv1alpha1.OperationScale, "the number of etcd members is changed from 3 to 5: starts"},
		{"a member is lost", replace, func(*passtest.Known) {}, operatorv1alpha1.OperationReplacement, "etcd member fleet-etcd-1 is replaced: starts"},
		{"nothing is to be done", plan.Step{Action: plan.Done, Ordinal: plan.None}, func(*passtest.Known) {}, "", ""},
		{"it waits for something that is said elsewhere", plan.Step{Action: plan.Wait, Ordinal: plan.None, Message: "no majority"}, func(*passtest.Known) {}, "", ""},
		{"servers are being replaced", scale, func(s *passtest.Known) { s.Servers.Rolling = "servers: 1 of 2 updated" }, "", "when nothing of the registry is being replaced any more"},
		{"members are being replaced", scale, func(s *passtest.Known) { s.Members.Rolling = "etcd: 1 of 3 members updated" }, "", "when nothing of the registry is being replaced any more"},
		{"members can't be replaced before there are more", scale, func(s *passtest.Known) {
			s.Members.Rolling, s.Members.Verdict = "etcd: 0 of 1 members updated", verdict.Waiting(operatorv1alpha1.ReasonMembersBlocked, "it can't be moved")
		}, operatorv1alpha1.OperationScale, "starts"},
		{"a member is lost while others are being replaced", replace, func(s *passtest.Known) { s.Members.Rolling = "etcd: 1 of 3 members updated" }, operatorv1alpha1.OperationReplacement, "starts"},
		{"it was never complete", scale, func(s *passtest.Known) { s.Registry.Status.History = nil }, "", ""},
		{"it was never complete, and has lost a member", replace, func(s *passtest.Known) { s.Registry.Status.History = nil }, operatorv1alpha1.OperationReplacement, "starts"},
		{"it took over data in the middle of a change", plan.Step{Action: plan.Promote, Ordinal: 3}, func(s *passtest.Known) {
			s.Registry.Status.History, s.Identity.Record.Joining, s.Identity.Record.Target = nil, "fleet-etcd-3", 5
		}, operatorv1alpha1.OperationScale, "starts"},
		{"it is paused", replace, func(s *passtest.Known) { s.Freeze("spec.paused is false") }, "", ""},
	} {
		s := ofThree(t)
		s.Registry.Spec.Etcd.Replicas = 5
		test.change(s)
		v := (Drive{Pass: s.Pass}).step(t.Context(), &Change{Objects: s.Objects, Identity: s.Identity, State: s.Members.State}, test.step)
		o := s.Registry.Status.Operation
		if (o != nil) != (test.begins != "") || o != nil && (o.Type != test.begins || o.Phase != operatorv1alpha1.PhasePreflight) || !strings.Contains(v.Message, test.says) || (v.Message == "") != (test.says == "") {
			t.Errorf("%s: %+v, %+v", test.reason, o, v)
		}
	}
}

// TestGrowsBesides has members be added beside another operation where the claim of the only one was
// deleted, and nowhere else: what that operation waits for is that they are.
func TestGrowsBesides(t *testing.T) {
	deleted := verdict.Waiting(operatorv1alpha1.ReasonClaimTerminating, "a claim was deleted").DegradedIf(true)
	for _, test := range []struct {
		reason string
		under  operatorv1alpha1.OperationType
		change func(*passtest.Known)
		asked  bool
	}{
		{"a rotation", operatorv1alpha1.OperationRotation, func(*passtest.Known) {}, true},
		{"an upgrade", operatorv1alpha1.OperationUpgrade, func(*passtest.Known) {}, true},
		{"no claim was deleted", operatorv1alpha1.OperationUpgrade, func(s *passtest.Known) { s.Ready() }, false},
		{"there are others", operatorv1alpha1.OperationUpgrade, func(s *passtest.Known) { s.Identity.Record.Members["m1"] = "a1" }, false},
		{"the registry is paused", operatorv1alpha1.OperationUpgrade, func(s *passtest.Known) { s.Registry.Spec.Paused = true }, false},
		{"servers are being replaced", operatorv1alpha1.OperationUpgrade, func(s *passtest.Known) { s.Servers.Rolling = "servers: 1 of 2 updated" }, false},
	} {
		s := ofThree(t)
		s.Identity.Record.Members, s.Identity.Record.Replicas = map[string]string{"m0": "a0"}, 1
		s.Verdicts[operatorv1alpha1.ConditionEtcdReady] = deleted
		s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: test.under}
		test.change(s)
		if got := (Drive{Pass: s.Pass}).Change().spec().Replicas; got != map[bool]int{true: 3, false: 1}[test.asked] {
			t.Errorf("%s: %d members", test.reason, got)
		}
	}
}

// TestOutlierIsAskedAgain takes a member that does not answer for one with other data, as long as
// it does not, and asks again before something is done about it.
func TestOutlierIsAskedAgain(t *testing.T) {
	for answer, outlier := range map[error]bool{nil: true, &etcd.NoAnswer{Member: "m0", Err: errors.New("no route")}: true, &etcd.DataSame{Member: "m0", Revision: 7}: false} {
		forgotten := 0
		a := access{seldom: func(string, func() error) error { return answer }, forget: func() { forgotten++ }}
		if err := a.Outlier(t.Context(), "m0"); (err == nil) != outlier || forgotten != 0 {
			t.Errorf("%v: %v, forgotten %d times", answer, err, forgotten)
		}
		if err := a.Compare(t.Context(), "m0"); (err == nil) != outlier || forgotten != 1 {
			t.Errorf("%v, asked again: %v, forgotten %d times", answer, err, forgotten)
		}
	}
}

// TestOutlierIsAskedSeldom has members that wait for something not scan all their data in each
// reconcile.
func TestOutlierIsAskedSeldom(t *testing.T) {
	s := ofThree(t)
	comparisons, asked := &etcd.Comparisons{}, 0
	ask := func() error { asked++; return nil }
	drive := func() Drive { return Drive{Pass: s.Pass, Comparisons: comparisons} }
	for i := range 20 {
		s.Now = s.Now.Add(time.Duration(i) * time.Second)
		if err := drive().access().seldom("fleet-etcd-0", ask); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times in three minutes", asked)
	}
	s.Identity.Record.Members["fleet-etcd-0"] = "another"
	if _ = drive().access().seldom("fleet-etcd-0", ask); asked != 2 {
		t.Error("what is known of a member counts for the one in its place")
	}
	s.Members.State.Alarms = []etcd.Alarm{{Type: etcd.AlarmCorrupt, MemberID: "another"}}
	if _ = drive().access().seldom("fleet-etcd-0", ask); asked != 3 {
		t.Error("what was known before an alarm counts after it")
	}
	comparisons.Forget("team/fleet")
	if _ = drive().access().seldom("fleet-etcd-0", ask); asked != 4 {
		t.Error("it is not forgotten with the registry")
	}
}

// TestLost says when a member whose data is lost is replaced, unless nothing is changed.
func TestLost(t *testing.T) {
	s := ofThree(t)
	d := Drive{Pass: s.Pass}
	if says := d.lost(0); says != "" {
		t.Errorf("none is lost: %q", says)
	}
	if says, at := d.lost(time.Minute), s.Now.Add(time.Minute).UTC().Format(time.RFC3339); says != "a new member takes its place at "+at+" (spec.etcd.replaceAfter)" {
		t.Errorf("it says %q", says)
	}
	if s.Freeze("spec.paused is false"); d.lost(time.Minute) != "" {
		t.Errorf("of a paused registry it says %q", d.lost(time.Minute))
	}
}
