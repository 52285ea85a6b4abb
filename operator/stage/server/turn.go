package server

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/turn"
	"github.com/clusterregistry/operator/operator/verdict"
)

// turn returns what to apply of the servers' stage. It is not complete when their
// Deployment has to wait until etcd's members are replaced, or must not be made at all.
func (s *Stage) turn(ctx context.Context) ([]*unstructured.Unstructured, verdict.Verdict) {
	all := s.Rendered.Stages[render.StageServer]
	if s.Held.State == verdict.Blocked {
		i := turn.DeploymentAt(all)
		return slices.Delete(slices.Clone(all), i, i+1), s.Held
	}
	if !s.MembersReplacing || s.ReadOnly() {
		return all, done
	}
	deployment, err := s.Deployment(ctx)
	if err != nil {
		return nil, verdict.Failed(err)
	}
	if deployment == nil || deployment.Status.ReadyReplicas == 0 || turn.RollingOut(s.Objects, deployment) {
		return all, done
	}
	i := turn.DeploymentAt(all)
	s.SetOwner(all[i])
	if !s.Applier.Pending(all[i]) {
		return all, done
	}
	rest := slices.Delete(slices.Clone(all), i, i+1)
	return rest, verdict.Waiting(operatorv1alpha1.ReasonProgressing, "Deployment %s is updated once the etcd members are replaced", deployment.Name).In(verdict.Soon).DegradedIf(true)
}
