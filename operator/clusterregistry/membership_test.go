package clusterregistry

import (
	"errors"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestMembersBegin is about when a change of etcd's members becomes an operation.
func TestMembersBegin(t *testing.T) {
	scale, replace := plan.Step{Action: plan.RecordTarget, Ordinal: plan.None, Size: 5}, plan.Step{Action: plan.RecordLeaving, Ordinal: 1}
	for _, test := range []struct {
		reason string
		step   plan.Step
		change func(*scope)
		begins operatorv1alpha1.OperationType
		says   string
	}{
		{"more members", scale, func(*scope) {}, operatorv1alpha1.OperationScale, "the number of etcd members is changed from 3 to 5: starts"},
		{"a member is lost", replace, func(*scope) {}, operatorv1alpha1.OperationReplacement, "etcd member fleet-etcd-1 is replaced: starts"},
		{"nothing is to be done", plan.Step{Action: plan.Done, Ordinal: plan.None}, func(*scope) {}, "", ""},
		{"it waits for something that is said elsewhere", plan.Step{Action: plan.Wait, Ordinal: plan.None, Message: "no majority"}, func(*scope) {}, "", ""},
		{"servers are being replaced", scale, func(s *scope) { s.Servers.Rolling = "servers: 1 of 2 updated" }, "", "when nothing of the registry is being replaced any more"},
		{"members are being replaced", scale, func(s *scope) { s.Members.Rolling = "etcd: 1 of 3 members updated" }, "", "when nothing of the registry is being replaced any more"},
		{"members can't be replaced before there are more", scale, func(s *scope) {
			s.Members.Rolling, s.Members.Verdict = "etcd: 0 of 1 members updated", verdict.Waiting(operatorv1alpha1.ReasonMembersBlocked, "it can't be moved")
		}, operatorv1alpha1.OperationScale, "starts"},
		{"a member is lost while others are being replaced", replace, func(s *scope) { s.Members.Rolling = "etcd: 1 of 3 members updated" }, operatorv1alpha1.OperationReplacement, "starts"},
		{"it was never complete", scale, func(s *scope) { s.Registry.Status.History = nil }, "", ""},
		{"it was never complete, and has lost a member", replace, func(s *scope) { s.Registry.Status.History = nil }, operatorv1alpha1.OperationReplacement, "starts"},
		{"it took over data in the middle of a change", plan.Step{Action: plan.Promote, Ordinal: 3}, func(s *scope) {
			s.Registry.Status.History, s.Identity.Record.Joining, s.Identity.Record.Target = nil, "fleet-etcd-3", 5
		}, operatorv1alpha1.OperationScale, "starts"},
		{"it is paused", replace, func(s *scope) { s.Freeze("spec.paused is false") }, "", ""},
	} {
		s := ofThree(t)
		s.Registry.Spec.Etcd.Replicas = 5
		test.change(s)
		v := reading(t, s).stepMembers(t.Context(), s, &membership.Change{Objects: s.Objects, Identity: s.Identity, State: s.Members.State}, test.step)
		o := s.Registry.Status.Operation
		if (o != nil) != (test.begins != "") || o != nil && (o.Type != test.begins || o.Phase != operatorv1alpha1.PhasePreflight) || !strings.Contains(v.Message, test.says) || (v.Message == "") != (test.says == "") {
			t.Errorf("%s: %+v, %+v", test.reason, o, v)
		}
	}
}

// TestMembersBesideUpgrade adds to an upgrade what is done to members meanwhile.
func TestMembersBesideUpgrade(t *testing.T) {
	s := ofThree(t)
	members := verdict.Waiting(operatorv1alpha1.ReasonMembersChanging, "fleet-etcd-1 is removed next").In(time.Second)
	upgrade := verdict.Waiting("Etcd", "etcd 1/3").In(time.Minute)
	if v := s.besides(members, upgrade); v.Message != "etcd 1/3; besides, fleet-etcd-1 is removed next" || v.Reason != "Etcd" || v.After != time.Second {
		t.Errorf("%+v", v)
	}
	if v := s.besides(done, upgrade); v.Message != upgrade.Message || v.After != time.Minute {
		t.Errorf("nothing is done to members: %+v", v)
	}
}

// TestLostNoted says when a lost member is replaced, unless nothing is changed.
func TestLostNoted(t *testing.T) {
	for frozen, says := range map[bool]string{false: "; a new member takes its place at ", true: ""} {
		s := ofThree(t)
		s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Waiting(operatorv1alpha1.ReasonDataLost, "it is empty"))
		if frozen {
			s.Freeze("spec.paused is false")
		}
		s.noteLost(time.Minute)
		if got := s.verdicts[operatorv1alpha1.ConditionEtcdReady].Message; !strings.HasPrefix(got, "it is empty"+says) || frozen && got != "it is empty" {
			t.Errorf("frozen %t: %q", frozen, got)
		}
	}
}

// TestOutlierIsAskedAgain takes a member that does not answer for one with other data, as long as
// it does not, and asks again before something is done about it.
func TestOutlierIsAskedAgain(t *testing.T) {
	for answer, outlier := range map[error]bool{nil: true, &etcd.NoAnswer{Member: "m0", Err: errors.New("no route")}: true, &etcd.DataSame{Member: "m0", Revision: 7}: false} {
		forgotten := 0
		a := membersAccess{seldom: func(string, func() error) error { return answer }, forget: func() { forgotten++ }}
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
	r, asked := reading(t, s), 0
	ask := func() error { asked++; return nil }
	for i := range 20 {
		s.Now = s.Now.Add(time.Duration(i) * time.Second)
		if err := r.membersAccess(s).seldom("fleet-etcd-0", ask); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times in three minutes", asked)
	}
	s.Identity.Record.Members["fleet-etcd-0"] = "another"
	if _ = r.membersAccess(s).seldom("fleet-etcd-0", ask); asked != 2 {
		t.Error("what is known of a member counts for the one in its place")
	}
	s.Members.State.Alarms = []etcd.Alarm{{Type: etcd.AlarmCorrupt, MemberID: "another"}}
	if _ = r.membersAccess(s).seldom("fleet-etcd-0", ask); asked != 3 {
		t.Error("what was known before an alarm counts after it")
	}
	r.comparisons.Forget("team/fleet")
	if _ = r.membersAccess(s).seldom("fleet-etcd-0", ask); asked != 4 {
		t.Error("it is not forgotten with the registry")
	}
}
