package upgrade

import (
	"errors"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// begin begins an upgrade. It touches nothing yet.
func (d *planner) begin(from, to version.Release) {
	operation.Begin(d.Registry, &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade, From: from.Version, To: to.Version})
	d.upgrade = &Upgrade{Operation: d.Registry.Status.Operation, From: from, To: to}
	d.enter(operatorv1alpha1.PhasePreflight)
	d.Release = d.upgrade.Release()
}

// enter has the next reconcile begin a phase.
func (d *planner) enter(phase operatorv1alpha1.OperationPhase) {
	operation.Enter(d.upgrade.Operation, phase, d.Now)
}

// planUpgrade continues the upgrade that is under way, or rolls it back.
func (d *planner) planUpgrade(releases []version.Release) verdict.Verdict {
	status := d.Registry.Status.Operation
	if status.Type != operatorv1alpha1.OperationUpgrade {
		return verdict.Waiting(operatorv1alpha1.ReasonVersionUnknown, "another operator started the operation %s, which this one does not know: install that one, or a newer one; nothing is changed until then", status.Type).In(verdict.Resync)
	}
	from, err := version.Find(releases, status.From)
	to, toErr := version.Find(releases, status.To)
	if err != nil || toErr != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonVersionUnknown, "another operator started the upgrade from %s to %s, and this one does not know both releases: install that one, or a newer one; nothing is changed until then", status.From, status.To).In(verdict.Resync)
	}
	d.upgrade = &Upgrade{Operation: status, From: from, To: to}
	var v verdict.Verdict
	switch wanted := string(d.Registry.Spec.Version); wanted {
	case to.Version:
		if err := to.CheckHost(d.HostVersion); err != nil {
			v = verdict.Waiting(reasonOf(err), "%s", err).In(verdict.Resync).DegradedIf(true)
		}
	case from.Version:
		v = d.turnBack()
	default:
		v = verdict.Waiting(operatorv1alpha1.ReasonUpgradeInProgress, "the upgrade from %s to %s is in progress: %s must wait until it completes, or until spec.version is set back to %s", from.Version, to.Version, wanted, from.Version).In(verdict.Resync).DegradedIf(true)
	}
	if d.upgrade == nil {
		d.Release = from
	} else {
		d.Release = d.upgrade.Release()
	}
	return v
}

// turnBack gives an upgrade up, since the spec names the version that ran again.
func (d *planner) turnBack() verdict.Verdict {
	u := d.upgrade
	switch {
	case u.Phase == operatorv1alpha1.PhaseRollback:
	case !u.Reached(operatorv1alpha1.PhaseServer):
		finish(d.Pass, operatorv1alpha1.TransitionAbandoned, "")
		d.upgrade = nil
	case version.CanReturn(u.From, u.To):
		d.enter(operatorv1alpha1.PhaseRollback)
	default:
		return verdict.Waiting(operatorv1alpha1.ReasonUpgradeUnsupported, "%s; the upgrade continues", u.NoReturn()).In(verdict.Resync).DegradedIf(true)
	}
	return done
}

// finish ends the upgrade that is under way.
func finish(p pass.Pass, state operatorv1alpha1.TransitionState, message string) {
	if last := history.Last(p.Registry); last.State == operatorv1alpha1.TransitionProgressing && p.Installed() {
		history.Complete(p.Registry, state, message, p.Now)
	}
	operation.End(p.Registry)
}

// reasonOf is the reason of a condition for what is against a release.
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
