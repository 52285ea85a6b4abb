package upgrade

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/snapshot"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Drive is what one reconcile does about the upgrade that is under way.
type Drive struct {
	pass.Pass
	// Upgrade is that one, as Plan has found it.
	Upgrade *Upgrade
	// Access is the way to the API servers.
	Access servers.Access
	// Notes are what the operator remembers of upgrades.
	Notes *Notes
	// Save takes a snapshot of etcd, with what comes before it.
	Save func(ctx context.Context, name string) (snapshot.Saved, verdict.Verdict)
}

// Step takes the upgrade one step further. The status has none when it has ended.
func (d Drive) Step(ctx context.Context) verdict.Verdict {
	return operation.Run{Pass: d.Pass}.Step(ctx, operation.Operation{
		Types:   []operatorv1alpha1.OperationType{operatorv1alpha1.OperationUpgrade},
		Handler: func(context.Context) (operation.Handler, verdict.Verdict) { return d.Handler(), verdict.Verdict{} },
		Ended:   d.ended,
	})
}

// Handler returns the upgrade that is under way with what was found in this reconcile.
func (d Drive) Handler() Handler {
	h := Handler{Upgrade: d.Upgrade, Registry: d.Registry, Now: d.Now, Verdicts: map[string]verdict.Verdict{}, EtcdState: d.Members.State, EtcdAccess: d.Members.Access,
		EtcdQuota: d.Volumes.EtcdQuota(d.Registry), EtcdDetail: d.Members.Detail, Servers: d.Servers, Notes: d.Notes, Actions: effects{d}}
	h.Reveal = d.Keys.Reveal()
	h.Stages = pass.Parts(d.Registry.Spec.Mode)[1:]
	for _, condition := range h.Stages {
		if v, reached := d.Verdict(condition); reached {
			h.Verdicts[condition] = v
		}
	}
	if d.Identity.Record != nil {
		h.EtcdIdentity = d.Identity.Record.Identity
	}
	return h
}

// effects are what an upgrade does to a registry.
type effects struct{ d Drive }

// Client implements Actions.
func (a effects) Client(ctx context.Context) (Registry, error) {
	client, err := a.d.Access.RegistryClient(ctx, a.d.Authorities.Serving.Bundle())
	if err != nil {
		return nil, err // not a nil pointer
	}
	return client, nil
}

// RecordRelease implements Actions.
func (a effects) RecordRelease(ctx context.Context, release string) error {
	return a.d.Identity.WriteRelease(ctx, release)
}

// TakeSnapshot implements Actions.
func (a effects) TakeSnapshot(ctx context.Context, name string) (snapshot.Saved, verdict.Verdict) {
	return a.d.Save(ctx, name)
}

// Event implements Actions.
func (a effects) Event(kind, reason, action, message string) {
	a.d.Event(kind, reason, action, "%s", message)
}

// endings say in an event how an upgrade ended.
var endings = map[operatorv1alpha1.TransitionState]string{
	operatorv1alpha1.TransitionCompleted:  "completed",
	operatorv1alpha1.TransitionRolledBack: "was rolled back",
	operatorv1alpha1.TransitionAbandoned:  "was abandoned",
}

// ended reports the end of the upgrade. What is rendered is another release's by now.
func (d Drive) ended(progress operation.Progress) {
	u, state, kind, message := d.Upgrade, operatorv1alpha1.TransitionCompleted, corev1.EventTypeNormal, ""
	if progress == operation.RolledBack {
		state = operatorv1alpha1.TransitionRolledBack
	}
	if progress == operation.RolledBack && u.Message == "" {
		state = operatorv1alpha1.TransitionAbandoned
	}
	if u.Message != "" {
		kind, message = corev1.EventTypeWarning, ": "+u.Message
	}
	finish(d.Pass, state, u.Message)
	d.Event(kind, string(state), "Upgrade", "the upgrade from %s to %s %s%s", u.From.Version, u.To.Version, endings[state], message)
}
