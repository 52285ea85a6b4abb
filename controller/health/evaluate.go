package health

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/probe"
)

// The conditions of a cluster.
const (
	Available           = v1beta1.ConditionAvailable
	Reachable           = v1beta1.ConditionReachable
	ControlPlaneHealthy = v1beta1.ConditionControlPlaneHealthy
	IdentityVerified    = v1beta1.ConditionIdentityVerified
)

// The reasons of conditions, besides those of package probe.
const (
	ReasonReached          = "Reached"
	ReasonUnreachable      = "Unreachable"
	ReasonMostUnreachable  = "MostUnreachable"
	ReasonAvailable        = "Available"
	ReasonNotVerified      = "NotVerified"
	ReasonEndpointChanged  = "EndpointChanged"
	ReasonIdentityMismatch = "IdentityMismatch"
	ReasonHeartbeatMissed  = "HeartbeatMissed"
	ReasonReported         = "Reported"
)

// evidence is all that the conditions of a cluster follow from.
type evidence struct {
	history history
	// isolated says that this side is most likely cut off: nothing turns False, unless the
	// way out is proven by clusters that answer.
	isolated, proven bool
	// unreached is for how long the cluster was not reached, zero when it was.
	unreached time.Duration
	// undecided says that too little is known of other clusters to tell whether this
	// side is cut off: nothing that was not False before turns False because it is not
	// reached.
	undecided bool
	// before are the conditions that this controller has reported before.
	before []metav1.Condition
	// reporters are the others that report of the cluster.
	reporters []v1beta1.Reporter
	// identity is the condition IdentityVerified that others have set; nil for none.
	identity *metav1.Condition
	// generation is that of the spec as it is, which nothing can have been observed beyond.
	generation int64
	// led is the last generation of the spec in which the endpoint is known to lead
	// elsewhere than before; 0 for none.
	led int64
	// moved says that the endpoint has changed, and was not reached since.
	moved bool
	// retracted says that this controller has taken IdentityVerified back, and no one
	// has set it since.
	retracted bool
	// heartbeat is what the cluster's entry expects, and silence how long no reporter
	// has had a sign of life.
	heartbeat *v1beta1.Heartbeat
	silence   time.Duration
}

// findings are the conditions of a cluster, without their times. Nil is one of which
// nothing is known yet.
type findings struct {
	reachable, healthy, identity, available *metav1.Condition
}

// evaluate returns the conditions that follow from the evidence.
func evaluate(e evidence) findings {
	f := findings{reachable: reachable(e)}
	f.healthy = healthy(e, f.reachable)
	f.identity = identity(e)
	f.available = available(e, f)
	return f
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// reachable says whether the cluster's API server answers with a certificate that the
// entry's CA has signed. What may pass leaves what was reported before.
func reachable(e evidence) *metav1.Condition {
	h, last, before := e.history, e.history.last, meta.FindStatusCondition(e.before, Reachable)
	switch {
	case h.probes == 0, recovers(before, last.Outcome.Reached(), h.reached):
		return before
	case last.Outcome == probe.NotAsked:
		return condition(Reachable, metav1.ConditionUnknown, last.Reason, last.Message)
	case last.Outcome.Reached():
		return condition(Reachable, metav1.ConditionTrue, ReasonReached, "The API server answers, with a certificate that can be verified.")
	case turnsFalse(e, h.unreached, before), e.doubted() && e.proven:
		return steady(e, before, condition(Reachable, metav1.ConditionFalse, last.Reason, last.Message))
	case e.doubted():
		return condition(Reachable, metav1.ConditionUnknown, ReasonMostUnreachable, "The API server has not answered for minutes, and neither have most others: whether it is down, or the health controller is cut off, can't be told.")
	}
	return before
}

// healthy says whether the cluster's API server says that it is ready.
func healthy(e evidence, reachable *metav1.Condition) *metav1.Condition {
	h, last, before := e.history, e.history.last, meta.FindStatusCondition(e.before, ControlPlaneHealthy)
	switch {
	case h.probes == 0, recovers(before, last.Outcome == probe.Ready, h.ready), recovers(reachable, last.Outcome.Reached(), h.reached):
		return before
	case last.Outcome == probe.Ready:
		return condition(ControlPlaneHealthy, metav1.ConditionTrue, last.Reason, last.Message)
	case last.Outcome == probe.NotReady && turnsFalse(e, h.unready, before):
		return steady(e, before, condition(ControlPlaneHealthy, metav1.ConditionFalse, last.Reason, last.Message))
	case last.Outcome == probe.Failed && reachable != nil && reachable.Status != metav1.ConditionTrue:
		return condition(ControlPlaneHealthy, metav1.ConditionUnknown, ReasonUnreachable, "The API server is not reached: see Reachable.")
	case last.Outcome == probe.NotReady, last.Outcome == probe.Failed:
		return before
	}
	return condition(ControlPlaneHealthy, metav1.ConditionUnknown, last.Reason, last.Message)
}

// doubted reports whether this side has seemed to be cut off from a cluster for so long that
// what was reported of it before is not to be believed.
func (e evidence) doubted() bool {
	return e.isolated && e.history.failed >= doubt && e.unreached >= doubtAfter
}

// recovers reports whether a condition is False still, although the last few probes, fewer
// than it takes, have succeeded.
func recovers(before *metav1.Condition, succeeded bool, times int) bool {
	return is(before, metav1.ConditionFalse) && succeeded && times < recovery
}

// steady returns a condition that is False: with the text of before until several probes in
// a row have said the same, unless that is of another spec.
func steady(e evidence, before, now *metav1.Condition) *metav1.Condition {
	if is(before, metav1.ConditionFalse) && before.ObservedGeneration >= e.generation && e.history.alike < threshold {
		return before
	}
	return now
}

// turnsFalse decides after how many failures in a row a condition is False. One that
// is False already stays so with whatever fails now.
func turnsFalse(e evidence, failures int, before *metav1.Condition) bool {
	return !e.isolated && (failures >= threshold && !e.undecided || is(before, metav1.ConditionFalse))
}

// identity is what others say of it, in the condition or in their own entries, unless
// that was of another endpoint. This controller signs in nowhere, so it can't tell one
// cluster from another.
func identity(e evidence) *metav1.Condition {
	reporter, c := reported(e.reporters, IdentityVerified)
	switch {
	case e.outdated(e.identity), e.identity == nil && e.outdated(c), e.retracted && c == nil:
		return condition(IdentityVerified, metav1.ConditionUnknown, ReasonEndpointChanged, "The cluster's identity was not verified at the endpoint that the entry has: it was at another one, or of another entry. To verify it, join the cluster again.")
	case e.identity != nil:
		return nil
	case c != nil:
		return condition(IdentityVerified, c.Status, ReasonReported, fmt.Sprintf("Reported by %s.", reporter))
	}
	return condition(IdentityVerified, metav1.ConditionUnknown, ReasonNotVerified, "No one who can read the cluster's namespace kube-system has compared its UID with spec.id.")
}

// outdated reports whether a condition is True of an endpoint that is not the cluster's
// any more, or of another object, whose generation this one has not reached. One that
// doesn't say what it was observed of stays.
func (e evidence) outdated(c *metav1.Condition) bool {
	return is(c, metav1.ConditionTrue) && c.ObservedGeneration > 0 && (c.ObservedGeneration < e.led || c.ObservedGeneration > e.generation)
}

// available sums up the others.
func available(e evidence, f findings) *metav1.Condition {
	reporter, said := reported(e.reporters, Available)
	_, identified := reported(e.reporters, IdentityVerified)
	switch {
	case is(e.identity, metav1.ConditionFalse), is(identified, metav1.ConditionFalse):
		return condition(Available, metav1.ConditionFalse, ReasonIdentityMismatch, "Another cluster answers at the endpoint than the one that the entry is for: see IdentityVerified.")
	case is(f.reachable, metav1.ConditionFalse):
		return condition(Available, metav1.ConditionFalse, f.reachable.Reason, f.reachable.Message)
	case is(f.healthy, metav1.ConditionFalse):
		return condition(Available, metav1.ConditionFalse, f.healthy.Reason, f.healthy.Message)
	case missed(e.heartbeat, e.silence):
		return condition(Available, metav1.ConditionUnknown, ReasonHeartbeatMissed, fmt.Sprintf("No reporter has had a sign of life of the cluster for more than %s, which is what spec.heartbeat tolerates.", tolerated(e.heartbeat)))
	case f.reachable == nil || f.healthy == nil:
		return nil
	case is(f.reachable, metav1.ConditionUnknown) && said != nil:
		return condition(Available, said.Status, ReasonReported, fmt.Sprintf("Reported by %s.", reporter))
	case is(f.reachable, metav1.ConditionUnknown):
		return condition(Available, metav1.ConditionUnknown, f.reachable.Reason, f.reachable.Message)
	case is(f.healthy, metav1.ConditionTrue):
		return condition(Available, metav1.ConditionTrue, ReasonAvailable, "The API server is reached and ready.")
	case f.healthy.Reason == probe.ReasonAnonymousRefused:
		return condition(Available, metav1.ConditionTrue, probe.ReasonAnonymousRefused, "The API server is reached; whether it is ready it doesn't tell anonymous clients.")
	}
	return condition(Available, metav1.ConditionUnknown, f.healthy.Reason, f.healthy.Message)
}

// tolerated returns how long the silence of all reporters may last.
func tolerated(h *v1beta1.Heartbeat) time.Duration {
	return time.Duration(h.PeriodSeconds) * time.Second * time.Duration(h.ToleratedMisses+1)
}

// missed reports whether the silence has lasted too long. Without a heartbeat, none does.
func missed(h *v1beta1.Heartbeat, silence time.Duration) bool {
	return h != nil && silence > tolerated(h)
}

// reported returns a condition in the entries of reporters: one that is False before
// one that is True, and that before one that is Unknown.
func reported(reporters []v1beta1.Reporter, kind string) (string, *metav1.Condition) {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionUnknown} {
		for _, reporter := range reporters {
			if c := meta.FindStatusCondition(reporter.Conditions, kind); is(c, status) {
				return reporter.Name, c
			}
		}
	}
	return "", nil
}

// is reports whether there is a condition, and with this status.
func is(c *metav1.Condition, status metav1.ConditionStatus) bool {
	return c != nil && c.Status == status
}
