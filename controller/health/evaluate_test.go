package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/probe"
)

var (
	ready    = probe.Result{Outcome: probe.Ready, Reason: probe.ReasonReady, Message: "ready", Version: "v1.37.1"}
	notReady = probe.Result{Outcome: probe.NotReady, Reason: probe.ReasonNotReady, Message: "not ready"}
	down     = probe.Result{Outcome: probe.Failed, Reason: probe.ReasonConnectionRefused, Message: "down"}
	slow     = probe.Result{Outcome: probe.Failed, Reason: probe.ReasonTimedOut, Message: "slow"}
	withheld = probe.Result{Outcome: probe.Withheld, Reason: probe.ReasonAnonymousRefused, Message: "withheld"}
	odd      = probe.Result{Outcome: probe.Unexpected, Reason: probe.ReasonUnexpectedAnswer, Message: "odd"}
	refused  = probe.Result{Outcome: probe.NotAsked, Reason: probe.ReasonAddressRefused, Message: "refused"}
)

// played returns the history of results and the conditions that were reported on the
// way, as when each was written to the cluster.
func played(e evidence, results ...probe.Result) (evidence, findings) {
	var f findings
	for _, result := range results {
		e.history = e.history.after(result, e.isolated)
		f = evaluate(e)
		e.before = nil
		for _, c := range []*metav1.Condition{f.reachable, f.healthy} {
			if c != nil {
				e.before = append(e.before, *c)
			}
		}
	}
	return e, f
}

// brief is a condition in a few letters: its status and reason.
func brief(c *metav1.Condition) string {
	if c == nil {
		return "-"
	}
	return string(c.Status) + " " + c.Reason
}

func TestEvaluate(t *testing.T) {
	with := func(reporter string, kind string, status metav1.ConditionStatus) []v1beta1.Reporter {
		return []v1beta1.Reporter{{Name: reporter, Conditions: []metav1.Condition{{Type: kind, Status: status, Reason: "R"}}}}
	}
	heartbeat := &v1beta1.Heartbeat{PeriodSeconds: 60, ToleratedMisses: 2}
	for _, test := range []struct {
		reason                        string
		evidence                      evidence
		results                       []probe.Result
		reachable, healthy, available string
	}{
		{"healthy", evidence{}, []probe.Result{ready}, "True Reached", "True Ready", "True Available"},
		{"a new one that fails is not judged yet", evidence{}, []probe.Result{down, down}, "-", "-", "-"},
		{"a new one that fails for good", evidence{}, []probe.Result{down, slow, down}, "False ConnectionRefused", "Unknown Unreachable", "False ConnectionRefused"},
		{"two failures change nothing", evidence{}, []probe.Result{ready, down, slow}, "True Reached", "True Ready", "True Available"},
		{"the third does", evidence{}, []probe.Result{ready, down, down, slow}, "False TimedOut", "Unknown Unreachable", "False TimedOut"},
		{"not when one between succeeds", evidence{}, []probe.Result{ready, down, down, ready, down, down}, "True Reached", "True Ready", "True Available"},
		{"another failure is not the reason yet", evidence{}, []probe.Result{down, down, down, slow, slow}, "False ConnectionRefused", "Unknown Unreachable", "False ConnectionRefused"},
		{"what fails now is the reason", evidence{}, []probe.Result{down, down, down, slow, slow, slow}, "False TimedOut", "Unknown Unreachable", "False TimedOut"},
		{"what fails is the reason at once for another spec", evidence{generation: 1}, []probe.Result{down, down, down, slow}, "False TimedOut", "Unknown Unreachable", "False TimedOut"},
		{"two failures that take turns", evidence{}, []probe.Result{down, down, down, slow, down, slow, down, slow, down, slow}, "False ConnectionRefused", "Unknown Unreachable", "False ConnectionRefused"},
		{"one success is not enough", evidence{}, []probe.Result{down, down, down, ready}, "False ConnectionRefused", "Unknown Unreachable", "False ConnectionRefused"},
		{"two successes are", evidence{}, []probe.Result{down, down, down, ready, ready}, "True Reached", "True Ready", "True Available"},
		{"successes in a row", evidence{}, []probe.Result{down, down, down, ready, down, ready}, "False ConnectionRefused", "Unknown Unreachable", "False ConnectionRefused"},
		{"reached again, and not ready", evidence{}, []probe.Result{down, down, down, notReady, notReady}, "True Reached", "Unknown Unreachable", "Unknown Unreachable"},
		{"ready once after it was not", evidence{}, []probe.Result{notReady, notReady, notReady, ready}, "True Reached", "False NotReady", "False NotReady"},
		{"ready twice after it was not", evidence{}, []probe.Result{notReady, notReady, notReady, ready, ready}, "True Reached", "True Ready", "True Available"},
		{"not ready three times", evidence{}, []probe.Result{ready, notReady, notReady, notReady}, "True Reached", "False NotReady", "False NotReady"},
		{"not ready twice", evidence{}, []probe.Result{ready, notReady, notReady}, "True Reached", "True Ready", "True Available"},
		{"a new one that is not ready", evidence{}, []probe.Result{notReady}, "True Reached", "-", "-"},
		{"not ready, with failures between", evidence{}, []probe.Result{ready, notReady, down, notReady, down, notReady}, "True Reached", "False NotReady", "False NotReady"},
		{"anonymous is refused", evidence{}, []probe.Result{withheld}, "True Reached", "Unknown AnonymousRefused", "True AnonymousRefused"},
		{"something else answers", evidence{}, []probe.Result{odd}, "True Reached", "Unknown UnexpectedAnswer", "Unknown UnexpectedAnswer"},
		{"the address is refused", evidence{}, []probe.Result{ready, refused}, "Unknown AddressRefused", "Unknown AddressRefused", "Unknown AddressRefused"},
		{"isolated, nothing turns False", evidence{isolated: true}, []probe.Result{ready, down, down, down, down, notReady, notReady, notReady, notReady}, "True Reached", "True Ready", "True Available"},
		{"isolated, what was False stays", evidence{isolated: true, before: []metav1.Condition{{Type: Reachable, Status: metav1.ConditionFalse, Reason: "Old"}}}, []probe.Result{down}, "False Old", "Unknown Unreachable", "False Old"},
		{"isolated for long", evidence{isolated: true, unreached: doubtAfter}, slices.Concat([]probe.Result{ready}, slices.Repeat([]probe.Result{down}, doubt)), "Unknown MostUnreachable", "Unknown Unreachable", "Unknown MostUnreachable"},
		{"isolated for long, and an agent reports", evidence{isolated: true, unreached: doubtAfter, reporters: with("agent", Available, metav1.ConditionTrue)}, slices.Concat([]probe.Result{ready}, slices.Repeat([]probe.Result{down}, doubt)), "Unknown MostUnreachable", "Unknown Unreachable", "True Reported"},
		{"isolated for long, and back", evidence{isolated: true, unreached: doubtAfter}, slices.Concat([]probe.Result{ready}, slices.Repeat([]probe.Result{down}, doubt), []probe.Result{ready}), "True Reached", "True Ready", "True Available"},
		{"most fail for long, and others answer", evidence{isolated: true, proven: true, unreached: doubtAfter}, slices.Concat([]probe.Result{ready}, slices.Repeat([]probe.Result{down}, doubt)), "False ConnectionRefused", "Unknown Unreachable", "False ConnectionRefused"},
		{"most fail not for long yet", evidence{isolated: true, proven: true, unreached: doubtAfter}, slices.Concat([]probe.Result{ready}, slices.Repeat([]probe.Result{down}, doubt-1)), "True Reached", "True Ready", "True Available"},
		{"isolated for many probes in a short time", evidence{isolated: true, proven: true, unreached: doubtAfter - 1}, slices.Concat([]probe.Result{ready}, slices.Repeat([]probe.Result{down}, 3*doubt)), "True Reached", "True Ready", "True Available"},
		{"isolated, what succeeds turns True", evidence{isolated: true, before: []metav1.Condition{{Type: Reachable, Status: metav1.ConditionFalse}}}, []probe.Result{ready, ready}, "True Reached", "True Ready", "True Available"},
		{"after a restart, what was reported stays", evidence{before: []metav1.Condition{{Type: Reachable, Status: metav1.ConditionTrue, Reason: "Old"}, {Type: ControlPlaneHealthy, Status: metav1.ConditionTrue, Reason: "Old"}}}, []probe.Result{down}, "True Old", "True Old", "True Available"},
		{"another cluster by its condition", evidence{identity: &metav1.Condition{Type: IdentityVerified, Status: metav1.ConditionFalse}}, []probe.Result{ready}, "True Reached", "True Ready", "False IdentityMismatch"},
		{"another cluster by a reporter", evidence{reporters: with("agent", IdentityVerified, metav1.ConditionFalse)}, []probe.Result{ready}, "True Reached", "True Ready", "False IdentityMismatch"},
		{"a heartbeat that is late is tolerated", evidence{heartbeat: heartbeat, silence: 180 * time.Second}, []probe.Result{refused}, "Unknown AddressRefused", "Unknown AddressRefused", "Unknown AddressRefused"},
		{"a heartbeat is missed", evidence{heartbeat: heartbeat, silence: 181 * time.Second, reporters: with("agent", Available, metav1.ConditionTrue)}, []probe.Result{refused}, "Unknown AddressRefused", "Unknown AddressRefused", "Unknown HeartbeatMissed"},
		{"a heartbeat is missed, and it is down", evidence{heartbeat: heartbeat, silence: time.Hour}, []probe.Result{down, down, down}, "False ConnectionRefused", "Unknown Unreachable", "False ConnectionRefused"},
		{"no heartbeat is expected", evidence{silence: time.Hour}, []probe.Result{ready}, "True Reached", "True Ready", "True Available"},
		{"an agent reports what can't be asked", evidence{reporters: with("agent", Available, metav1.ConditionTrue)}, []probe.Result{refused}, "Unknown AddressRefused", "Unknown AddressRefused", "True Reported"},
		{"an agent is not believed against what is seen", evidence{reporters: with("agent", Available, metav1.ConditionTrue)}, []probe.Result{down, down, down}, "False ConnectionRefused", "Unknown Unreachable", "False ConnectionRefused"},
	} {
		_, f := played(test.evidence, test.results...)
		if got, want := brief(f.reachable)+", "+brief(f.healthy)+", "+brief(f.available), test.reachable+", "+test.healthy+", "+test.available; got != want {
			t.Errorf("%s:\n got %s\nwant %s", test.reason, got, want)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, test := range []struct {
		reason   string
		evidence evidence
		want     string
	}{
		{"no one says", evidence{}, "Unknown NotVerified"},
		{"others have set it", evidence{identity: &metav1.Condition{Type: IdentityVerified, Status: metav1.ConditionTrue}}, "-"},
		{"a reporter says", evidence{reporters: []v1beta1.Reporter{{Name: "join", Conditions: []metav1.Condition{{Type: IdentityVerified, Status: metav1.ConditionTrue}}}}}, "True Reported"},
		{"others have set it, of an endpoint of before", evidence{generation: 3, led: 3, identity: &metav1.Condition{Type: IdentityVerified, Status: metav1.ConditionTrue, ObservedGeneration: 2}}, "Unknown EndpointChanged"},
		{"others have set it, of this endpoint", evidence{generation: 3, led: 3, identity: &metav1.Condition{Type: IdentityVerified, Status: metav1.ConditionTrue, ObservedGeneration: 3}}, "-"},
		{"others have set it, of another object", evidence{generation: 2, identity: &metav1.Condition{Type: IdentityVerified, Status: metav1.ConditionTrue, ObservedGeneration: 7}}, "Unknown EndpointChanged"},
		{"a reporter says, of another object", evidence{generation: 2, reporters: []v1beta1.Reporter{{Name: "join", Conditions: []metav1.Condition{{Type: IdentityVerified, Status: metav1.ConditionTrue, ObservedGeneration: 7}}}}}, "Unknown EndpointChanged"},
		{"others have set it, and don't say of what", evidence{generation: 3, led: 3, identity: &metav1.Condition{Type: IdentityVerified, Status: metav1.ConditionTrue, ObservedGeneration: 0}}, "-"},
		{"another cluster answered at an endpoint of before", evidence{generation: 3, led: 3, identity: &metav1.Condition{Type: IdentityVerified, Status: metav1.ConditionFalse, ObservedGeneration: 2}}, "-"},
		{"a reporter says, of an endpoint of before", evidence{generation: 3, led: 3, reporters: []v1beta1.Reporter{{Name: "join", Conditions: []metav1.Condition{{Type: IdentityVerified, Status: metav1.ConditionTrue, ObservedGeneration: 2}}}}}, "Unknown EndpointChanged"},
	} {
		if got := brief(identity(test.evidence)); got != test.want {
			t.Errorf("%s: %s, want %s", test.reason, got, test.want)
		}
	}
}

func TestMost(t *testing.T) {
	for _, test := range []struct {
		failing, asked int
		want           bool
	}{{0, 0, false}, {2, 2, false}, {3, 3, true}, {3, 5, true}, {3, 6, false}, {4, 6, true}, {5000, 10000, false}, {5001, 10000, true}} {
		if got := (sums{asked: test.asked, failing: test.failing}).most(); got != test.want {
			t.Errorf("%d of %d: %v", test.failing, test.asked, got)
		}
	}
}

// TestFailuresOfAnIsolationDoNotCount expects three more after it.
func TestFailuresOfAnIsolationDoNotCount(t *testing.T) {
	e, _ := played(evidence{}, ready, down, down)
	e.isolated = true
	e, _ = played(e, down, down)
	e.isolated = false
	e, f := played(e, down, down)
	if !is(f.reachable, metav1.ConditionTrue) {
		t.Errorf("after two failures: %s", brief(f.reachable))
	}
	if _, f = played(e, down); !is(f.reachable, metav1.ConditionFalse) {
		t.Errorf("after three failures: %s", brief(f.reachable))
	}
}

// TestExpires has two API servers behind one address, one of which gets a new certificate.
func TestExpires(t *testing.T) {
	at := func(hours int) probe.Result {
		result := ready
		result.Expires = time.Unix(0, 0).Add(time.Duration(hours) * time.Hour)
		return result
	}
	h := history{}.after(at(5), false)
	for range certificateMemory {
		for _, result := range []probe.Result{at(7), down, at(5)} {
			if h = h.after(result, false); !h.expires().Equal(at(5).Expires) {
				t.Fatalf("%v while both certificates are seen", h.expires())
			}
		}
	}
	for i := range certificateMemory {
		h = h.after(at(7), false)
		if first := h.expires(); !first.Equal(at(5).Expires) {
			t.Fatalf("%v after %d probes", first, i)
		}
	}
	if h = h.after(at(7), false); !h.expires().Equal(at(7).Expires) || len(h.certificates) != 1 {
		t.Errorf("the certificate that is gone still counts: %v", h.certificates)
	}
}

// TestMessages expects sentences, and that a heartbeat's names what it tolerates.
func TestMessages(t *testing.T) {
	_, f := played(evidence{heartbeat: &v1beta1.Heartbeat{PeriodSeconds: 60, ToleratedMisses: 2}, silence: time.Hour}, refused)
	if !strings.Contains(f.available.Message, "more than 3m0s") || !strings.HasSuffix(f.identity.Message, ".") {
		t.Errorf("%q, %q", f.available.Message, f.identity.Message)
	}
}
