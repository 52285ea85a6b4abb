package members

import (
	"context"
	"strings"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// external is done when all endpoints of an external etcd answer, and are those of the
// etcd with the registry's data.
func (s *Stage) external(ctx context.Context) verdict.Verdict {
	access, v := s.access(ctx)
	if !v.Complete() {
		return v.AsReadOnly() // the servers would be given what opens nothing
	}
	if len(s.Registry.Spec.Etcd.External.Endpoints) == 0 {
		return verdict.Waiting(operatorv1alpha1.ReasonExternalUnreachable, "spec.etcd.external.endpoints is empty: name all members").AsReadOnly()
	}
	for _, endpoint := range s.Registry.Spec.Etcd.External.Endpoints {
		access.Endpoints[strings.TrimPrefix(string(endpoint), "https://")] = string(endpoint)
	}
	state := s.Ask(ctx, access)
	s.reportEtcd(state)
	s.found.State, s.found.Access = state, access
	if err := state.Check(etcd.Identity{ClusterID: s.Before.Etcd.ClusterID}); err != nil {
		s.Registry.Status.Etcd.ClusterID = s.Before.Etcd.ClusterID
		return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "%s; nothing is changed until spec.etcd.external names the etcd with the registry's data", err).AsReadOnly()
	}
	trouble := s.etcdTrouble()
	if state.Serves() != nil {
		if !trouble.Complete() {
			return trouble.AsReadOnly()
		}
		// Servers that run may still be let in, other than by what the spec says now.
		return verdict.Waiting(operatorv1alpha1.ReasonExternalUnreachable, "%s", state.Failures()).AsReadOnly()
	}
	if err := apply.IgnoreReadOnly(s.Apply(ctx, s.Rendered.Stages[render.StageEtcd]...)); err != nil {
		return verdict.Failed(err)
	}
	if !trouble.Complete() {
		return trouble.DegradedIf(true)
	}
	if failures := state.Failures(); failures != "" {
		return verdict.Waiting(operatorv1alpha1.ReasonExternalUnreachable, "%s", failures).DegradedIf(true)
	}
	return done
}
