package clusterregistry

import (
	"errors"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// begin begins an upgrade. It touches nothing yet.
func (s *scope) begin(from, to version.Release) {
	operation.Begin(s.Registry, &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade, From: from.Version, To: to.Version})
	s.upgrade = &upgrade.Upgrade{Operation: s.Registry.Status.Operation, From: from, To: to}
	s.enter(operatorv1alpha1.PhasePreflight)
	s.Release = s.upgrade.Release()
}

// enter has the next reconcile begin a phase.
func (s *scope) enter(phase operatorv1alpha1.OperationPhase) {
	operation.Enter(s.upgrade.Operation, phase, s.Now)
}

// planUpgrade continues the upgrade that is under way, or rolls it back.
func (s *scope) planUpgrade(releases []version.Release) verdict.Verdict {
	status := s.Registry.Status.Operation
	if status.Type != operatorv1alpha1.OperationUpgrade {
		return verdict.Waiting(operatorv1alpha1.ReasonVersionUnknown, "another operator started the operation %s, which this one does not know: install that one, or a newer one; nothing is changed until then", status.Type).In(verdict.Resync)
	}
	from, err := version.Find(releases, status.From)
	to, toErr := version.Find(releases, status.To)
	if err != nil || toErr != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonVersionUnknown, "another operator started the upgrade from %s to %s, and this one does not know both releases: install that one, or a newer one; nothing is changed until then", status.From, status.To).In(verdict.Resync)
	}
	s.upgrade = &upgrade.Upgrade{Operation: status, From: from, To: to}
	var v verdict.Verdict
	switch wanted := string(s.Registry.Spec.Version); wanted {
	case to.Version:
		if err := to.CheckHost(s.HostVersion); err != nil {
			v = verdict.Waiting(reasonOf(err), "%s", err).In(verdict.Resync).DegradedIf(true)
		}
	case from.Version:
		v = s.turnBack()
	default:
		v = verdict.Waiting(operatorv1alpha1.ReasonUpgradeInProgress, "the upgrade from %s to %s is in progress: %s must wait until it completes, or until spec.version is set back to %s", from.Version, to.Version, wanted, from.Version).In(verdict.Resync).DegradedIf(true)
	}
	if s.upgrade == nil {
		s.Release = from
	} else {
		s.Release = s.upgrade.Release()
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
		return verdict.Waiting(operatorv1alpha1.ReasonUpgradeUnsupported, "%s; the upgrade continues", u.NoReturn()).In(verdict.Resync).DegradedIf(true)
	}
	return done
}

// finish ends the upgrade.
func (s *scope) finish(state operatorv1alpha1.TransitionState, message string) {
	if last := history.Last(s.Registry); last.State == operatorv1alpha1.TransitionProgressing && s.Installed() {
		history.Complete(s.Registry, state, message, s.Now)
	}
	operation.End(s.Registry)
	s.upgrade = nil
}

func reasonOf(err error) string {
	switch {
	case errors.Is(err, version.ErrUnknown):
		return operatorv1alpha1.ReasonVersionUnknown
	case errors.Is(err, version.ErrHost):
		return operatorv1alpha1.ReasonHostUnsupported
	case errors.Is(err, version.ErrUpgrade):
		return operatorv1alpha1.ReasonUpgradeUnsupported
	case errors.Is(err, version.ErrSupport):
		return operatorv1alpha1.ReasonVersionUnsupported
	}
	return operatorv1alpha1.ReasonInternalError
}
