package pass

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestCopy hands a pass out: who has it reads what is found later, and changes nothing of it.
func TestCopy(t *testing.T) {
	verdicts := Found{}
	p := New(operandtest.New(t, "{spec: {etcd: {replicas: 1}}}"), verdicts.Verdict)
	given := p
	verdicts[operatorv1alpha1.ConditionEtcdReady] = verdict.Waiting("EtcdNotReady", "no quorum")
	if v, reached := given.Verdict(operatorv1alpha1.ConditionEtcdReady); !reached || v.Message != "no quorum" {
		t.Errorf("it reads %+v", v)
	}
	if err := given.Await(operatorv1alpha1.ConditionEtcdReady); err == nil || err.Error() != "waiting until EtcdReady is True: no quorum" {
		t.Errorf("it waits for %v", err)
	}
	given.HostVersion, given.Servers.Rolling = "v1.30.0", "servers: 1 of 2"
	if p.HostVersion != "" || p.Servers.Rolling != "" {
		t.Errorf("a copy changed the pass: %q, %q", p.HostVersion, p.Servers.Rolling)
	}
}

// TestPausedUntil is about what may be held where: an upgrade between its phases, and a change of
// members before a member joins or after it has.
func TestPausedUntil(t *testing.T) {
	const upgrade = "{type: Upgrade, phaseStartedTime: null, phase: "
	for reason, test := range map[string]struct {
		paused    bool
		operation string
		record    *etcd.Record
		held      bool
	}{
		"not paused":            {false, "", nil, false},
		"paused":                {true, "", nil, true},
		"before the first step": {true, upgrade + "Preflight}", nil, true},
		"within a phase":        {true, upgrade + "Server}", nil, false},
		"between two phases":    {true, upgrade + "Server, phaseCompleted: true}", nil, true},
		"another operation":     {true, "{type: Rotation, phaseStartedTime: null, phase: Server}", nil, true},
		"a member joins":        {true, "", &etcd.Record{Joining: "fleet-etcd-1"}, false},
		"a member leaves":       {true, "", &etcd.Record{Leaving: "fleet-etcd-1"}, false},
		"no member does":        {true, "", &etcd.Record{}, true},
	} {
		text := "{spec: {etcd: {replicas: 1}}}"
		if test.operation != "" {
			text = "{spec: {etcd: {replicas: 1}}, status: {operation: " + test.operation + "}}"
		}
		p := New(operandtest.New(t, text), Found{}.Verdict)
		p.Registry.Spec.Paused, p.Identity.Record = test.paused, test.record
		if held := p.PausedUntil() == "spec.paused is false"; held != test.held {
			t.Errorf("%s: until %q", reason, p.PausedUntil())
		}
	}
}

// TestPaused tells a person's pause, which is of no one part, from that a registry may not be a part
// of the host cluster's API: the pause comes first.
func TestPaused(t *testing.T) {
	for reason, test := range map[string]struct {
		paused, forbidden bool
		condition, until  string
	}{
		"nothing holds it":    {false, false, "", ""},
		"a person does":       {true, false, "", "spec.paused is false"},
		"it may not be there": {false, true, operatorv1alpha1.ConditionAPIServiceReady, "mode Aggregated is allowed in namespace team"},
		"both":                {true, true, "", "spec.paused is false"},
	} {
		p := New(operandtest.New(t, operandtest.InstalledAggregated), Found{}.Verdict)
		if p.Registry.Spec.Paused = test.paused; test.forbidden {
			p.Aggregation = verdict.Waiting(operatorv1alpha1.ReasonAggregationNotAllowed, "no one has allowed it")
		}
		if condition, until := p.Paused(); condition != test.condition || until != test.until || p.PausedUntil() != until {
			t.Errorf("%s: %q, until %q", reason, condition, until)
		}
	}
}

// TestUnsteady names the first of the parts that keep a registry from being steady.
func TestUnsteady(t *testing.T) {
	verdicts := Found{}
	p := New(operandtest.New(t, operandtest.InstalledAggregated), verdicts.Verdict)
	if got := p.Unsteady(); got != "CertificatesReady is not known yet" {
		t.Errorf("at first: %q", got)
	}
	for _, part := range Parts(p.Registry.Spec.Mode)[1:] {
		verdicts[part] = verdict.Verdict{}
	}
	if got := p.Unsteady(); got != "" {
		t.Errorf("whatever the plan says: %q", got)
	}
	if p.Members.Replacing = true; p.Unsteady() != "etcd members are being replaced" {
		t.Errorf("members: %q", p.Unsteady())
	}
	verdicts[Last(p.Registry.Spec.Mode)] = verdict.Waiting("r", "not served").DegradedIf(true)
	if got := p.Unsteady(); got != "APIServiceReady: not served" {
		t.Errorf("the last part: %q", got)
	}
}

// TestOnlyClaimDeleted tells the claim of the only member from that of one of several.
func TestOnlyClaimDeleted(t *testing.T) {
	terminating := verdict.Waiting(operatorv1alpha1.ReasonClaimTerminating, "a claim was deleted")
	for _, test := range []struct {
		members int
		v       verdict.Verdict
		want    bool
	}{
		{1, terminating.DegradedIf(true), true},
		{1, terminating, false}, // it does not serve
		{1, verdict.Verdict{}, false},
		{2, terminating.DegradedIf(true), false},
	} {
		p := New(operandtest.New(t, operandtest.InstalledAggregated), Found{operatorv1alpha1.ConditionEtcdReady: test.v}.Verdict)
		p.Identity.Record = &etcd.Record{Identity: etcd.Identity{Members: map[string]string{}}}
		for i := range test.members {
			p.Identity.Record.Members[string(rune('a'+i))] = "1"
		}
		if got := p.OnlyClaimDeleted(); got != test.want {
			t.Errorf("%d members, %+v: %v", test.members, test.v, got)
		}
	}
}

// TestDeleting takes a registry for deleted with its namespace.
func TestDeleting(t *testing.T) {
	p := New(operandtest.New(t, "{spec: {etcd: {replicas: 1}}}"), Found{}.Verdict)
	if p.Deleting() != "" {
		t.Error(p.Deleting())
	}
	if p.Terminating = true; !strings.Contains(p.Deleting(), "with its namespace team, which is terminating") {
		t.Error(p.Deleting())
	}
	if p.Registry.DeletionTimestamp = new(metav1.Now()); p.Deleting() != "the registry is being deleted" {
		t.Error(p.Deleting())
	}
}
