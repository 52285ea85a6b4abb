package members

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// external is done when all endpoints of an external etcd answer, and are those of the
// etcd with the registry's data.
func (s *Stage) external(ctx context.Context) verdict.Verdict {
	access, v := s.External(ctx)
	if !v.Complete() {
		return v.AsReadOnly() // the servers would be given what opens nothing
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
	if v := s.externalWentBack(state); !v.Complete() {
		return v
	}
	if v := s.owned(ctx, access.Only(state)); !v.Complete() {
		s.Registry.Status.Etcd.ClusterID = s.Before.Etcd.ClusterID // spec.etcd.external may name another one next
		return v
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
	return watched(state)
}

// External returns the way to an external etcd.
func (s *Stage) External(ctx context.Context) (etcd.Access, verdict.Verdict) {
	access, v := s.access(ctx)
	if !v.Complete() {
		return access, v
	}
	if len(s.Registry.Spec.Etcd.External.Endpoints) == 0 {
		return access, verdict.Waiting(operatorv1alpha1.ReasonExternalUnreachable, "spec.etcd.external.endpoints is empty: name all members")
	}
	for _, endpoint := range s.Registry.Spec.Etcd.External.Endpoints {
		access.Endpoints[strings.TrimPrefix(string(endpoint), "https://")] = string(endpoint)
	}
	return access, done
}

// oldestExternal is the oldest version of an external etcd that servers work with, and
// docs/reference/compatibility.md names.
const oldestExternal = "v3.5.13"

// watched returns a verdict that is done, with what those who run an external etcd should
// know of it. Sizes are not told, which change all the time: metrics have them.
func watched(state etcd.State) verdict.Verdict {
	v := done
	for _, member := range state.Members {
		if version := "v" + member.Version; semver.Compare(version, oldestExternal) < 0 {
			v = v.Note(operatorv1alpha1.ReasonEtcdVersionUnsupported, fmt.Sprintf("member %s runs etcd %s, and servers need %s or newer: upgrade it", member.Name, version, oldestExternal))
		}
	}
	for _, member := range state.Members {
		if member.NearlyFull() {
			v = v.Note(operatorv1alpha1.ReasonStorageNearlyFull, fmt.Sprintf("the file of member %s has more than %d%% of its quota of %d MiB, at which etcd refuses every write but deletions: defragment the members, raise --quota-backend-bytes, or remove clusters", member.Name, etcd.NearlyFullShare, member.Quota>>20))
		}
	}
	return v
}
