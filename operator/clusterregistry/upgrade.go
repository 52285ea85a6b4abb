package clusterregistry

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/registryclient"
	"github.com/clusterregistry/operator/operator/snapshot"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// begin begins an upgrade. It touches nothing yet.
func (s *scope) begin(from, to version.Release) {
	s.registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade, From: from.Version, To: to.Version}
	s.upgrade = &upgrade.Upgrade{Operation: s.registry.Status.Operation, From: from, To: to}
	s.enter(operatorv1alpha1.PhasePreflight)
	s.release = s.upgrade.Release()
}

// enter has the next reconcile begin a phase.
func (s *scope) enter(phase operatorv1alpha1.OperationPhase) {
	operation.Enter(s.upgrade.Operation, phase, s.now)
}

// planUpgrade continues the upgrade that is under way, or rolls it back.
func (s *scope) planUpgrade(releases []version.Release) verdict.Verdict {
	status := s.registry.Status.Operation
	from, err := version.Find(releases, status.From)
	to, toErr := version.Find(releases, status.To)
	if err != nil || toErr != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonVersionUnknown, "another operator started the upgrade from %s to %s, and this one does not know both releases: install that one, or a newer one; nothing is changed until then", status.From, status.To).In(resync)
	}
	s.upgrade = &upgrade.Upgrade{Operation: status, From: from, To: to}
	var v verdict.Verdict
	switch wanted := string(s.registry.Spec.Version); wanted {
	case to.Version:
		if err := to.CheckHost(s.host); err != nil {
			v = verdict.Waiting(reasonOf(err), "%s", err).In(resync).DegradedIf(true)
		}
	case from.Version:
		v = s.turnBack()
	default:
		v = verdict.Waiting(operatorv1alpha1.ReasonUpgradeInProgress, "the upgrade from %s to %s is in progress: %s must wait until it completes, or until spec.version is set back to %s", from.Version, to.Version, wanted, from.Version).In(resync).DegradedIf(true)
	}
	if s.upgrade == nil {
		s.release = from
	} else {
		s.release = s.upgrade.Release()
	}
	return v
}

// turnBack gives an upgrade up, since the spec names the version that ran again.
func (s *scope) turnBack() verdict.Verdict {
	u := s.upgrade
	switch {
	case u.Phase == operatorv1alpha1.PhaseRollback:
	case !u.Reached(operatorv1alpha1.PhaseServer):
		s.finish(operatorv1alpha1.TransitionAbandoned, "")
	case version.CanReturn(u.From, u.To):
		s.enter(operatorv1alpha1.PhaseRollback)
	default:
		return verdict.Waiting(operatorv1alpha1.ReasonUpgradeUnsupported, "%s; the upgrade continues", u.NoReturn()).In(resync).DegradedIf(true)
	}
	return done
}

// advance takes the upgrade one step further.
func (r *Reconciler) advance(ctx context.Context, s *scope) verdict.Verdict {
	reason, until := s.halted()
	driver := operation.Driver{Status: s.upgrade.Operation, Recorded: s.before.Operation, Now: s.now, ReadOnly: s.frozenBy(), HeldReason: reason, HeldUntil: until, HeldRetry: resync}
	v, progress := driver.Advance(ctx, r.upgradeHandler(s))
	switch progress {
	case operation.Completed:
		return r.end(s, operatorv1alpha1.TransitionCompleted)
	case operation.RolledBack:
		if s.upgrade.Message == "" {
			return r.end(s, operatorv1alpha1.TransitionAbandoned)
		}
		return r.end(s, operatorv1alpha1.TransitionRolledBack)
	case operation.UnderWay:
	}
	return v
}

// upgradeHandler returns the upgrade that is under way with what was found in this
// reconcile.
func (r *Reconciler) upgradeHandler(s *scope) upgrade.Handler {
	h := upgrade.Handler{Upgrade: s.upgrade, Registry: s.registry, Now: s.now, Verdicts: s.results, EtcdState: s.etcdState, EtcdAccess: s.etcdAccess,
		EtcdQuota: s.etcdQuota(), Rolling: s.rolling, ServersFailed: s.serversFailed, Notes: &r.notes, Actions: upgradeActions{r, s}}
	for _, stage := range stages(s.registry.Spec.Mode) {
		h.Stages = append(h.Stages, stage.condition)
	}
	if s.identity != nil {
		h.EtcdIdentity = s.identity.Identity
	}
	return h
}

// upgradeActions are what an upgrade does to a registry.
type upgradeActions struct {
	r *Reconciler
	s *scope
}

// Client implements upgrade.Actions.
func (a upgradeActions) Client(ctx context.Context) (upgrade.Registry, error) {
	client, err := a.r.client(ctx, a.s)
	if err != nil {
		return nil, err // not a nil pointer
	}
	return client, nil
}

// RecordRelease implements upgrade.Actions.
func (a upgradeActions) RecordRelease(ctx context.Context, release string) error {
	return a.r.recordRelease(ctx, a.s, release)
}

// TakeSnapshot implements upgrade.Actions.
func (a upgradeActions) TakeSnapshot(ctx context.Context, name string) (snapshot.Saved, verdict.Verdict) {
	return a.r.takeSnapshot(ctx, a.s, name)
}

// Event implements upgrade.Actions.
func (a upgradeActions) Event(kind, reason, action, message string) {
	a.r.event(a.s, kind, reason, action, "%s", message)
}

// ended says in an event how an upgrade ended.
var ended = map[operatorv1alpha1.TransitionState]string{
	operatorv1alpha1.TransitionCompleted:  "completed",
	operatorv1alpha1.TransitionRolledBack: "was rolled back",
	operatorv1alpha1.TransitionAbandoned:  "was abandoned",
}

// end reports the end of the upgrade.
func (r *Reconciler) end(s *scope, state operatorv1alpha1.TransitionState) verdict.Verdict {
	u, kind, message := s.upgrade, corev1.EventTypeNormal, ""
	if u.Message != "" {
		kind, message = corev1.EventTypeWarning, ": "+u.Message
	}
	s.finish(state, u.Message)
	r.event(s, kind, string(state), "Upgrade", "the upgrade from %s to %s %s%s", u.From.Version, u.To.Version, ended[state], message)
	return done.In(verdict.AtOnce) // what is rendered is another release's by now
}

// finish ends the upgrade.
func (s *scope) finish(state operatorv1alpha1.TransitionState, message string) {
	if last := history.Last(s.registry); last.State == operatorv1alpha1.TransitionProgressing && s.installed() {
		history.Complete(s.registry, state, message, s.now)
	}
	s.registry.Status.Operation, s.upgrade = nil, nil
}

// client returns a client of the registry: through the host, or at its own
// Service.
func (r *Reconciler) client(ctx context.Context, s *scope) (*registryclient.Client, error) {
	if s.registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
		return registryclient.New(r.Host)
	}
	config, err := r.independentConfig(ctx, s)
	if err != nil {
		return nil, err
	}
	return registryclient.New(config)
}
