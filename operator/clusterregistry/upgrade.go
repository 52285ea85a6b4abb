package clusterregistry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// atOnce is when to look again after a step that nothing else tells of.
const atOnce = time.Second

// upgrade is the upgrade that is under way. Its phase is in the status, where it
// is written before it begins: an operator that was killed goes on there.
type upgrade struct {
	*operatorv1alpha1.Upgrade
	from, to version.Release
}

// phase is a step of an upgrade. Its run returns what it waits for, nil when it
// is complete.
type phase struct {
	name operatorv1alpha1.UpgradePhase
	run  func(*Reconciler, context.Context, *scope) verdict.Verdict
	// etcd marks a phase that an external etcd has none of.
	etcd bool
}

// phases are the steps of an upgrade, in their order.
func phases() []phase {
	return []phase{
		{name: operatorv1alpha1.PhasePreflight, run: (*Reconciler).preflight},
		{name: operatorv1alpha1.PhaseSnapshot, run: (*Reconciler).snapshot, etcd: true},
		{name: operatorv1alpha1.PhaseEtcd, run: (*Reconciler).upgradeEtcd, etcd: true},
		{name: operatorv1alpha1.PhaseServer, run: (*Reconciler).upgradeServers},
		{name: operatorv1alpha1.PhaseVerification, run: (*Reconciler).verify},
		{name: operatorv1alpha1.PhaseStorageMigration, run: (*Reconciler).rewrite},
	}
}

// back is the way back, which takes the place of all phases that are left.
var back = phase{name: operatorv1alpha1.PhaseRollback, run: (*Reconciler).returned}

// reached reports whether a phase has begun on the way forward.
func (u *upgrade) reached(name operatorv1alpha1.UpgradePhase) bool {
	index := func(name operatorv1alpha1.UpgradePhase) int {
		return slices.IndexFunc(phases(), func(p phase) bool { return p.name == name })
	}
	return index(u.Phase) >= index(name)
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
	s.registry.Status.Upgrade = &operatorv1alpha1.Upgrade{From: from.Version, To: to.Version}
	s.upgrade = &upgrade{s.registry.Status.Upgrade, from, to}
	s.enter(operatorv1alpha1.PhasePreflight)
	s.release = s.upgrade.release()
}

// enter has the next look at the registry begin a phase.
func (s *scope) enter(name operatorv1alpha1.UpgradePhase) {
	u := s.upgrade
	u.Phase, u.PhaseCompleted, u.PhaseStartedTime, u.FailingSince = name, false, metav1.NewTime(s.now), nil
	u.Progress = string(name)
}

// planUpgrade goes on with the upgrade that is under way, or back.
func (s *scope) planUpgrade(releases []version.Release) verdict.Verdict {
	status := s.registry.Status.Upgrade
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

// advance runs the present phase and, when it is complete, goes to the next one.
// In a read-only pass it does neither.
func (r *Reconciler) advance(ctx context.Context, s *scope) verdict.Verdict {
	u := s.upgrade
	halted, _ := s.halted()
	switch why := s.frozenBy(); {
	case s.before.Upgrade == nil || s.before.Upgrade.Phase != u.Phase:
		// The phase begins when it is written down.
		return s.waits("begins").In(atOnce)
	case why != "":
		return s.waits("nothing is changed now: %s", why)
	case u.PhaseCompleted && halted == "":
		return s.resume()
	}
	steps := phases()
	i := slices.IndexFunc(steps, func(p phase) bool { return p.name == u.Phase })
	step := back
	if i >= 0 {
		step = steps[i]
	}
	if !u.PhaseCompleted {
		if v := step.run(r, ctx, s); !v.Complete() {
			return v
		}
	}
	if i < 0 {
		state := operatorv1alpha1.TransitionAbandoned
		if u.Message != "" {
			state = operatorv1alpha1.TransitionRolledBack
		}
		return r.end(s, state)
	}
	if i == len(steps)-1 {
		return r.end(s, operatorv1alpha1.TransitionCompleted)
	}
	next := steps[i+1:]
	if s.registry.Spec.Etcd.External != nil {
		next = slices.DeleteFunc(next, func(p phase) bool { return p.etcd })
	}
	if reason, until := s.halted(); reason != "" {
		u.PhaseCompleted = true
		return verdict.Waiting(reason, "%s is done; %s comes when %s", u.Phase, next[0].name, until).In(resync)
	}
	if v := r.prepare(ctx, s, next[0].name); !v.Complete() {
		return v
	}
	s.enter(next[0].name)
	return s.waits("begins").In(atOnce)
}

// resume goes on after a pause, in which anything can have happened. As long as
// no server was touched, the upgrade begins again: its snapshot would lack what
// was written since. Later, what was done last is checked again.
func (s *scope) resume() verdict.Verdict {
	u := s.upgrade
	u.PhaseCompleted = false
	if !u.reached(operatorv1alpha1.PhaseServer) {
		s.enter(operatorv1alpha1.PhasePreflight)
		return s.waits("begins again after the pause").In(atOnce)
	}
	return s.waits("is checked again after the pause").In(atOnce)
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

// prepare writes down what must be known before a phase begins.
func (r *Reconciler) prepare(ctx context.Context, s *scope, next operatorv1alpha1.UpgradePhase) verdict.Verdict {
	u := s.upgrade
	if last := s.lastTransition(); u.Phase == operatorv1alpha1.PhasePreflight && last.State != operatorv1alpha1.TransitionProgressing {
		s.recordTransition(u.to.Version)
	}
	switch next {
	case operatorv1alpha1.PhaseSnapshot:
		u.Snapshot = strings.ToLower(fmt.Sprintf("%s-before-%s-%s", u.from.Version, u.to.Version, s.now.UTC().Format("20060102T150405Z")))
	case operatorv1alpha1.PhaseServer:
		// From here on the data may be what only the new release reads.
		if err := r.recordRelease(ctx, s, u.to.Version); err != nil {
			return failed(err)
		}
	}
	return done
}

// finish ends the upgrade.
func (s *scope) finish(state operatorv1alpha1.TransitionState, message string) {
	if last := s.lastTransition(); last.State == operatorv1alpha1.TransitionProgressing && s.installed() {
		s.completeTransition(state, message)
	}
	s.registry.Status.Upgrade, s.upgrade = nil, nil
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
	if last := s.lastTransition(); last.Snapshot != "" {
		data = fmt.Sprintf("the snapshot %s (revision %d) in PersistentVolumeClaim %s%s has all that was written before", last.Snapshot, last.SnapshotRevision, s.registry.Name, contract.SnapshotsSuffix)
	}
	return verdict.Waiting(operatorv1alpha1.ReasonUpgradeBlocked, "%s. %s. Mend what the message names, or set spec.version to a later release; %s", problem, u.noReturn(), data)
}
