package clusterregistry

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/snapshot"
	"github.com/clusterregistry/operator/operator/verdict"
)

// advance takes the upgrade one step further.
func (r *Reconciler) advance(ctx context.Context, s *scope) verdict.Verdict {
	return s.driver().Step(ctx, operation.Operation{
		Types:   []operatorv1alpha1.OperationType{operatorv1alpha1.OperationUpgrade},
		Handler: func(context.Context) (operation.Handler, verdict.Verdict) { return r.upgradeHandler(s), done },
		Ended:   s.endUpgrade,
	})
}

// upgradeHandler returns the upgrade that is under way with what was found in this
// reconcile.
func (r *Reconciler) upgradeHandler(s *scope) upgrade.Handler {
	h := upgrade.Handler{Upgrade: s.upgrade, Registry: s.Registry, Now: s.Now, Verdicts: s.verdicts, EtcdState: s.Members.State, EtcdAccess: s.Members.Access,
		EtcdQuota: s.Volumes.EtcdQuota(s.Registry), EtcdDetail: s.Members.Detail, ServersFailure: s.Servers.Failure, Notes: &r.notes, Actions: upgradeActions{r, s}}
	h.Reveal = s.Keys.Reveal()
	h.Stages = pass.Parts(s.Registry.Spec.Mode)[1:]
	if s.Identity.Record != nil {
		h.EtcdIdentity = s.Identity.Record.Identity
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
	client, err := a.r.access(a.s).RegistryClient(ctx, a.s.Authorities.Serving.Bundle())
	if err != nil {
		return nil, err // not a nil pointer
	}
	return client, nil
}

// RecordRelease implements upgrade.Actions.
func (a upgradeActions) RecordRelease(ctx context.Context, release string) error {
	return a.s.Identity.WriteRelease(ctx, release)
}

// TakeSnapshot implements upgrade.Actions.
func (a upgradeActions) TakeSnapshot(ctx context.Context, name string) (snapshot.Saved, verdict.Verdict) {
	return a.s.saveBefore(ctx, name)
}

// Event implements upgrade.Actions.
func (a upgradeActions) Event(kind, reason, action, message string) {
	a.s.Event(kind, reason, action, "%s", message)
}

// ended says in an event how an upgrade ended.
var ended = map[operatorv1alpha1.TransitionState]string{
	operatorv1alpha1.TransitionCompleted:  "completed",
	operatorv1alpha1.TransitionRolledBack: "was rolled back",
	operatorv1alpha1.TransitionAbandoned:  "was abandoned",
}

// endUpgrade reports the end of the upgrade. What is rendered is another release's by now.
func (s *scope) endUpgrade(progress operation.Progress) {
	u, state, kind, message := s.upgrade, operatorv1alpha1.TransitionCompleted, corev1.EventTypeNormal, ""
	if progress == operation.RolledBack {
		state = operatorv1alpha1.TransitionRolledBack
	}
	if progress == operation.RolledBack && u.Message == "" {
		state = operatorv1alpha1.TransitionAbandoned
	}
	if u.Message != "" {
		kind, message = corev1.EventTypeWarning, ": "+u.Message
	}
	s.finish(state, u.Message)
	s.Event(kind, string(state), "Upgrade", "the upgrade from %s to %s %s%s", u.From.Version, u.To.Version, ended[state], message)
}
