package cluster

import (
	"fmt"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/internal/contract"
)

// permission is what some writes need besides the right to write the cluster: a verb on a
// subresource that is not served.
type permission struct {
	verb, resource, subresource string
	// always is true when a write without the permission is refused whatever Guard says.
	always bool
	// needed returns for what names a write needs it.
	needed func(version string, written, stored *clusterregistry.Cluster) []need
}

// need is an object that a write needs a permission on, with the fields whose change is the
// reason, as a version of the API calls them.
type need struct{ name, fields string }

var permissions = []permission{
	{"update", "clusters", "endpoints", false, ofCluster(ofSpec(changedEndpoints), givenAway)},
	{"update", "clusters", "identity", true, ofCluster(ofSpec(rebound), givenAway)},
	{"update", "clusters", "identity", false, ofCluster(ofSpec(changedIdentity))},
	{"create", "clustersets", "join", true, changedSets},
}

// changes returns the fields of a cluster that a write changes, as a version calls them.
type changes func(version string, written, stored *clusterregistry.Cluster) []string

// ofCluster is about a permission on the cluster that is written.
func ofCluster(all ...changes) func(string, *clusterregistry.Cluster, *clusterregistry.Cluster) []need {
	return func(version string, written, stored *clusterregistry.Cluster) []need {
		var fields []string
		for _, changed := range all {
			fields = append(fields, changed(version, written, stored)...)
		}
		if len(fields) == 0 {
			return nil
		}
		return []need{{written.Name, strings.Join(fields, ", ")}}
	}
}

// ofSpec is about fields of the spec.
func ofSpec(changed func(version string, written, stored *clusterregistry.ClusterSpec) []string) changes {
	return func(version string, written, stored *clusterregistry.Cluster) []string {
		return changed(version, &written.Spec, &stored.Spec)
	}
}

// givenAway returns the annotations by which the controller gives an entry to another
// object, and then writes what is guarded with its own rights, if they are set. To remove
// one gives the entry to no one.
func givenAway(_ string, written, stored *clusterregistry.Cluster) (changed []string) {
	if to := written.Annotations[contract.AdoptAnnotation]; to != "" && to != stored.Annotations[contract.AdoptAnnotation] {
		changed = append(changed, "the annotation "+contract.AdoptAnnotation)
	}
	if written.Annotations[contract.KeepAnnotation] == contract.KeptMoved && stored.Annotations[contract.KeepAnnotation] != contract.KeptMoved {
		changed = append(changed, fmt.Sprintf("the annotation %s to %s", contract.KeepAnnotation, contract.KeptMoved))
	}
	return changed
}

// changedSets returns the set that a cluster is taken out of, and the one that it is put in.
func changedSets(_ string, written, stored *clusterregistry.Cluster) (needs []need) {
	if written.Spec.ClusterSet == stored.Spec.ClusterSet {
		return nil
	}
	for _, set := range []string{stored.Spec.ClusterSet, written.Spec.ClusterSet} {
		if set != "" {
			needs = append(needs, need{set, "spec.clusterSet"})
		}
	}
	return needs
}

// changedEndpoints returns the fields that say where a cluster is and how to sign in to
// it, if they change. Both forms count in every version, since admission may have changed
// the one that the request did not have.
func changedEndpoints(version string, written, stored *clusterregistry.ClusterSpec) []string {
	endpoints, access := "spec.endpoints", "spec.access"
	if version == form.V1alpha1 {
		endpoints, access = "spec.kubernetesApiEndpoints", "spec.authInfo"
	}
	var changed []string
	if differ(written.Endpoints, stored.Endpoints) || differ(written.KubernetesAPIEndpoints, stored.KubernetesAPIEndpoints) {
		changed = append(changed, endpoints)
	}
	if differ(written.Access, stored.Access) || differ(written.AuthInfo, stored.AuthInfo) {
		changed = append(changed, access)
	}
	return changed
}

// changedIdentity returns the fields that say which cluster this is, what manages its entry
// and what that was made from, if they are given. An id that a cluster has never changes.
func changedIdentity(_ string, written, stored *clusterregistry.ClusterSpec) []string {
	var changed []string
	if written.ID != stored.ID {
		changed = append(changed, "spec.id")
	}
	if stored.Manager == nil && written.Manager != nil {
		changed = append(changed, "spec.manager")
	}
	if stored.SourceRef == nil && written.SourceRef != nil {
		changed = append(changed, "spec.sourceRef")
	}
	return changed
}

// rebound returns the fields with what manages an entry and with the object that it was made
// from, if they become others: another manager then takes the entry for its own, and whoever
// makes entries from such objects has this entry follow that one.
func rebound(_ string, written, stored *clusterregistry.ClusterSpec) []string {
	var changed []string
	if stored.Manager != nil && differ(written.Manager, stored.Manager) {
		changed = append(changed, "spec.manager")
	}
	if stored.SourceRef != nil && differ(written.SourceRef, stored.SourceRef) {
		changed = append(changed, "spec.sourceRef")
	}
	return changed
}

// differ reports whether two values say something else. What is empty and what is
// absent say the same.
func differ[T any](a, b T) bool { return !equality.DeepEqual(a, b) }
