package clusterregistry

import (
	"context"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/registryclient"
	"github.com/clusterregistry/operator/operator/stage/controller"
	"github.com/clusterregistry/operator/operator/verdict"
)

// retractTime is for how long reports are taken back before the rest of the registry is
// reconciled again. One request may take longer.
const retractTime = 5 * time.Second

// retract takes back what the controller has reported of clusters, when none is to run any
// more. How far that got is remembered until the operator ends, and found out again.
func (r *Reconciler) retract(ctx context.Context, s *scope) verdict.Verdict {
	retraction := controller.Retraction{Objects: s.Objects, Awaits: s.awaited(), Step: func(ctx context.Context) (bool, error) {
		client, err := r.access(s).RegistryClient(ctx, s.Authorities.Serving.Bundle())
		if err != nil {
			return false, err
		}
		at := registryclient.Retraction{Managers: []string{contract.HealthReporter, contract.RegisterHostReporter, contract.ClusterAPIReporter}}
		if known, ok := r.retractions.Load(s.Registry.UID); ok {
			at = known.(registryclient.Retraction)
		}
		until := time.Now().Add(retractTime)
		at, err = client.Retract(ctx, at, func() bool { return time.Now().After(until) })
		r.retractions.Store(s.Registry.UID, at)
		return at.Complete(), err
	}}
	v := retraction.Run(ctx)
	if v.Complete() {
		r.retractions.Delete(s.Registry.UID)
	}
	return v
}

// awaited returns what has to be before clients reach this registry, and not another one
// that the host cluster serves, or one of which it is not known what it serves.
func (s *scope) awaited() string {
	if s.upgrade != nil {
		return "the upgrade to complete"
	}
	kind := operatorv1alpha1.ConditionServerReady
	if s.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
		kind = operatorv1alpha1.ConditionAPIServiceReady
	}
	if v, reached := s.Verdict(kind); !reached || !v.Complete() {
		return kind
	}
	return ""
}
