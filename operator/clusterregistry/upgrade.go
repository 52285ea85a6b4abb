package clusterregistry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// atOnce is when to reconcile again after a step of which no watch tells.
const atOnce = time.Second

// upgrade is the upgrade that is under way. Its phase is in the status, where it
// is written before it begins: an operator that was killed resumes there.
type upgrade struct {
	*operatorv1alpha1.Operation
	from, to version.Release
}

// phases are the phases of an upgrade, in their order.
var phases = []operatorv1alpha1.OperationPhase{
	operatorv1alpha1.PhasePreflight, operatorv1alpha1.PhaseSnapshot, operatorv1alpha1.PhaseEtcd,
	operatorv1alpha1.PhaseServer, operatorv1alpha1.PhaseVerification, operatorv1alpha1.PhaseStorageMigration,
}

// reached reports whether a phase has begun on the way forward.
func (u *upgrade) reached(phase operatorv1alpha1.OperationPhase) bool {
	return slices.Index(phases, u.Phase) >= slices.Index(phases, phase)
}

// release composes what is rendered in the present phase. A version of the API is
// taken from the host before servers come that lack it, and given to it when all
// servers have it.
func (u *upgrade) release() version.Release {
	servers, etcd, serves := u.from, u.from, u.from.Serves
	if u.reached(operatorv1alpha1.PhaseEtcd) || u.Phase == operatorv1alpha1.PhaseRollback {
		etcd = u.to
	}
	if u.reached(operatorv1alpha1.PhaseServer) || u.Phase == operatorv1alpha1.PhaseRollback {
		serves = version.ServesBoth(u.from, u.to)
	}
	if u.reached(operatorv1alpha1.PhaseServer) {
		servers = u.to
	}
	if u.reached(operatorv1alpha1.PhaseVerification) {
		serves = u.to.Serves
	}
	servers.Members, servers.Serves = etcd.Members, serves
	return servers
}

// begin begins an upgrade. It touches nothing yet.
func (s *scope) begin(from, to version.Release) {
	s.registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade, From: from.Version, To: to.Version}
	s.upgrade = &upgrade{s.registry.Status.Operation, from, to}
	s.enter(operatorv1alpha1.PhasePreflight)
	s.release = s.upgrade.release()
}

// enter has the next reconcile begin a phase.
func (s *scope) enter(phase operatorv1alpha1.OperationPhase) {
	operation.Enter(s.upgrade.Operation, phase, s.now)
}

// planUpgrade goes on with the upgrade that is under way, or back.
func (s *scope) planUpgrade(releases []version.Release) verdict.Verdict {
	status := s.registry.Status.Operation
	from, err := version.Find(releases, status.From)
	to, toErr := version.Find(releases, status.To)
	if err != nil || toErr != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonVersionUnknown, "another operator has begun the upgrade %s -> %s, and this one does not know both: install that one, or a newer one; nothing is changed until then", status.From, status.To).In(resync)
	}
	s.upgrade = &upgrade{status, from, to}
	var v verdict.Verdict
	switch wanted := string(s.registry.Spec.Version); wanted {
	case to.Version:
		if err := to.CheckHost(s.host); err != nil {
			v = verdict.Waiting(reasonOf(err), "%s", err).In(resync).DegradedIf(true)
		}
	case from.Version:
		v = s.turnBack()
	default:
		v = verdict.Waiting(operatorv1alpha1.ReasonUpgradeInProgress, "the upgrade %s -> %s is under way: %s has to wait until that is done, or until spec.version was set back to %s", from.Version, to.Version, wanted, from.Version).In(resync).DegradedIf(true)
	}
	if s.upgrade == nil {
		s.release = from
	} else {
		s.release = s.upgrade.release()
	}
	return v
}

// turnBack gives an upgrade up, since the version that ran is wanted again.
func (s *scope) turnBack() verdict.Verdict {
	u := s.upgrade
	switch {
	case u.Phase == operatorv1alpha1.PhaseRollback:
	case !u.reached(operatorv1alpha1.PhaseServer):
		s.finish(operatorv1alpha1.TransitionAbandoned, "")
	case version.CanReturn(u.from, u.to):
		s.enter(operatorv1alpha1.PhaseRollback)
	default:
		return verdict.Waiting(operatorv1alpha1.ReasonUpgradeUnsupported, "%s; the upgrade goes on", u.noReturn()).In(resync).DegradedIf(true)
	}
	return done
}

// noReturn says why the servers of before can't come back.
func (u *upgrade) noReturn() string {
	return fmt.Sprintf("%s can't take over again, since it does not read %s, in which %s stores clusters", u.from.Version, u.to.Stores, u.to.Version)
}

// advance takes the upgrade one step further.
func (r *Reconciler) advance(ctx context.Context, s *scope) verdict.Verdict {
	reason, until := s.halted()
	driver := operation.Driver{Status: s.upgrade.Operation, Recorded: s.before.Operation, Now: s.now, ReadOnly: s.frozenBy(), HeldReason: reason, HeldUntil: until, HeldRetry: resync}
	v, progress := driver.Advance(ctx, upgradeHandler{r, s})
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

// upgradeHandler is the upgrade as operation.Driver knows it.
type upgradeHandler struct {
	r *Reconciler
	s *scope
}

// Steps implements operation.Handler. An external etcd is neither saved nor upgraded.
func (h upgradeHandler) Steps() []operation.Step {
	own := []operation.Step{
		{Phase: operatorv1alpha1.PhaseSnapshot, Run: h.step((*Reconciler).snapshot), Prepare: h.step((*Reconciler).nameSnapshot)},
		{Phase: operatorv1alpha1.PhaseEtcd, Run: h.step((*Reconciler).upgradeEtcd)},
	}
	if h.s.registry.Spec.Etcd.External != nil {
		own = nil
	}
	return slices.Concat([]operation.Step{{Phase: operatorv1alpha1.PhasePreflight, Run: h.step((*Reconciler).preflight)}}, own, []operation.Step{
		{Phase: operatorv1alpha1.PhaseServer, Run: h.step((*Reconciler).upgradeServers), Prepare: h.step((*Reconciler).recordTarget)},
		{Phase: operatorv1alpha1.PhaseVerification, Run: h.step((*Reconciler).verify)},
		{Phase: operatorv1alpha1.PhaseStorageMigration, Run: h.step((*Reconciler).rewrite)},
	})
}

// Rollback implements operation.Handler.
func (h upgradeHandler) Rollback() operation.Step {
	return operation.Step{Phase: operatorv1alpha1.PhaseRollback, Run: h.step((*Reconciler).returned)}
}

// Resume implements operation.Handler. As long as no server was touched, the upgrade
// begins again: its snapshot would lack what was written since.
func (h upgradeHandler) Resume(at operatorv1alpha1.OperationPhase) operatorv1alpha1.OperationPhase {
	if h.s.upgrade.reached(operatorv1alpha1.PhaseServer) {
		return at
	}
	return operatorv1alpha1.PhasePreflight
}

// Waiting implements operation.Handler.
func (h upgradeHandler) Waiting(format string, args ...any) verdict.Verdict {
	return h.s.waits(format, args...)
}

func (h upgradeHandler) step(run func(*Reconciler, context.Context, *scope) verdict.Verdict) func(context.Context) verdict.Verdict {
	return func(ctx context.Context) verdict.Verdict { return run(h.r, ctx, h.s) }
}

// end tells of the end of the upgrade.
func (r *Reconciler) end(s *scope, state operatorv1alpha1.TransitionState) verdict.Verdict {
	u, kind, message := s.upgrade, corev1.EventTypeNormal, ""
	if u.Message != "" {
		kind, message = corev1.EventTypeWarning, ": "+u.Message
	}
	s.finish(state, u.Message)
	r.event(s, kind, string(state), "Upgrade", "the upgrade %s -> %s is over%s", u.from.Version, u.to.Version, message)
	return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "done").In(atOnce)
}

// enlistTransition has the upgrade in the history as soon as it changes anything.
func (s *scope) enlistTransition() {
	if history.Last(s.registry).State != operatorv1alpha1.TransitionProgressing {
		history.Begin(s.registry, s.upgrade.to.Version, s.now)
	}
}

// nameSnapshot names the snapshot before it is taken.
func (r *Reconciler) nameSnapshot(_ context.Context, s *scope) verdict.Verdict {
	s.enlistTransition()
	s.upgrade.Snapshot = strings.ToLower(fmt.Sprintf("%s-before-%s-%s", s.upgrade.from.Version, s.upgrade.to.Version, s.now.UTC().Format("20060102T150405Z")))
	return done
}

// recordTarget records the release whose servers come next: from here on, the data may
// be what only that one reads.
func (r *Reconciler) recordTarget(ctx context.Context, s *scope) verdict.Verdict {
	s.enlistTransition()
	if err := r.recordRelease(ctx, s, s.upgrade.to.Version); err != nil {
		return failed(err)
	}
	return done
}

// finish ends the upgrade.
func (s *scope) finish(state operatorv1alpha1.TransitionState, message string) {
	if last := history.Last(s.registry); last.State == operatorv1alpha1.TransitionProgressing && s.installed() {
		history.Complete(s.registry, state, message, s.now)
	}
	s.registry.Status.Operation, s.upgrade = nil, nil
}

// fail brings the servers back to the release before, if that is possible.
func (s *scope) fail(format string, args ...any) verdict.Verdict {
	u, problem := s.upgrade, fmt.Sprintf(format, args...)
	if version.CanReturn(u.from, u.to) {
		s.enter(operatorv1alpha1.PhaseRollback)
		u.Message = problem
		return s.waits("%s", problem).In(atOnce)
	}
	data := "etcd is external: restore a backup of your own"
	if last := history.Last(s.registry); last.Snapshot != "" {
		data = fmt.Sprintf("the snapshot %s (revision %d) in PersistentVolumeClaim %s%s has all that was written before", last.Snapshot, last.SnapshotRevision, s.registry.Name, contract.SnapshotsSuffix)
	}
	return verdict.Waiting(operatorv1alpha1.ReasonUpgradeBlocked, "%s. %s. Mend what the message names, or set spec.version to a later release; %s", problem, u.noReturn(), data)
}
