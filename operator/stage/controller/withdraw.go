package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
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
	for _, kind := range []string{"ClusterRoleBinding", "Deployment"} {
		for _, object := range s.Rendered.Stages[render.StageController] {
			if object.GetKind() != kind || !s.listed(object) {
				continue
			}
			if _, err := s.WriterDespite(operatorv1alpha1.ConditionAPIServiceReady).Delete(ctx, apply.Reference(object), s.Owner()); err != nil {
				return verdict.Failed(err)
			}
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

// listed reports whether the operator has ever applied an object.
func (s *Stage) listed(object *unstructured.Unstructured) bool {
	for _, reference := range s.Registry.Status.Inventory {
		if reference == apply.Reference(object) {
			return true
		}
	}
	return false
}
