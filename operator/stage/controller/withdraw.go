package controller

import (
	"context"
	"strings"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
)

// withdraw takes the controller of an aggregated registry back while the host cluster
// serves the API group of someone else: it would read and write what is in their registry.
// First go its rights in the whole cluster, then its pods. All comes back with the group. That
// the registry may not be a part of the host cluster's API does not keep it: by that another
// registry may have taken its place.
func (s *Stage) withdraw(ctx context.Context) verdict.Verdict {
	if until := s.ReadOnlyUntil(operatorv1alpha1.ConditionAPIServiceReady); until != "" {
		return verdict.Waiting(operatorv1alpha1.ReasonGroupTaken, "the API group in the host cluster belongs to %s, and the controller, which acts on that, is to be removed; nothing is changed until %s", s.TakenBy, until).In(verdict.Vigil)
	}
	for _, reference := range acts(s.Objects) {
		if _, err := s.WriterDespite(operatorv1alpha1.ConditionAPIServiceReady).Delete(ctx, reference, s.Owner()); err != nil {
			return verdict.Failed(err)
		}
	}
	pods, err := s.Pods(ctx, operand.ComponentController)
	if err != nil {
		return verdict.Failed(err)
	}
	if left := operand.Running(pods); len(left) > 0 {
		return verdict.Waiting(operatorv1alpha1.ReasonGroupTaken, "the API group in the host cluster belongs to %s, on which the controller would act: it is being removed; waiting for pod %s to terminate", s.TakenBy, left[0].Name)
	}
	return verdict.Waiting(operatorv1alpha1.ReasonGroupTaken, "the API group in the host cluster belongs to %s, on which the controller would act: it runs again once the group is this registry's", s.TakenBy)
}

// Left withdraws the controller of a registry whose reconcile has ended before its stages, where
// someone else serves the API group. It is done when there is none, or nothing to withdraw it for.
func Left(ctx context.Context, o *operand.Objects, takenBy string) verdict.Verdict {
	if takenBy == "" || len(acts(o)) == 0 {
		return done
	}
	s := &Stage{Objects: o, TakenBy: takenBy}
	return s.withdraw(ctx).DegradedIf(true)
}

// acts returns by what the controller acts, of what the operator has ever applied: its rights in the
// whole cluster, and then its Deployment.
func acts(o *operand.Objects) (out []operatorv1alpha1.ObjectReference) {
	names := map[string]string{"ClusterRoleBinding": clusterWide(o.Registry) + "-", "Deployment": o.Name(contract.ControllerSuffix)}
	for _, kind := range []string{"ClusterRoleBinding", "Deployment"} {
		for _, reference := range o.Registry.Status.Inventory {
			if reference.Kind == kind && strings.HasPrefix(reference.Name, names[kind]) {
				out = append(out, reference)
			}
		}
	}
	return out
}

// clusterWide is how the names of what the controller of a registry has in the whole cluster begin.
func clusterWide(registry *operatorv1alpha1.ClusterRegistry) string {
	return "clusterregistry:" + registry.Namespace + ":" + registry.Name + ":controller"
}
