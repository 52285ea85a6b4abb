// Package access says who sees and changes which clusters: the commands grant and
// can-see.
//
// Where a registry has the visibility ClusterSets, a request for clusters needs two
// permissions. The gate is its verb on clusters, by which the host cluster, or an
// independent registry, lets it in. The decision is the verb on clustersets/clusters:
// without a name it is about all clusters, with one about those of that set.
package access

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

const (
	clusters = "clusters"
	sets     = "clustersets"
	// setClusters and setJoin are subresources in name only: there is nothing to read or
	// write there.
	setClusters = "clustersets/clusters"
	setJoin     = "clustersets/join"
)

var (
	reads  = []string{"get", "list", "watch"}
	writes = []string{"create", "update", "patch", "delete", "deletecollection"}
	// decided are the verbs of the decision: each read asks get.
	decided = slices.Concat([]string{"get"}, writes)
)

// Right is what a request needs: a verb on a resource of the registry's API.
type Right struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Name is that of one object, empty for all.
	Name string `json:"name,omitempty"`
}

// String returns the right as a message has it.
func (r Right) String() string {
	if r.Name == "" {
		return r.Verb + " " + r.Resource
	}
	return r.Verb + " " + r.Resource + " of " + r.Name
}

// gate is what lets a request in.
func gate(verb string) Right { return Right{verb, clusters, ""} }

// decision is what lets a request at the clusters of a set, or at all.
func decision(verb, set string) Right { return Right{verb, setClusters, set} }

// join is what a cluster needs to enter or leave a set.
func join(set string) Right { return Right{"create", setJoin, set} }

// read is what shows the set itself.
func read(set string) Right { return Right{"get", sets, set} }

// allows reports whether a rule of RBAC allows what a right is about. A name that is
// empty is compared, too: a rule for names is not one for all.
func (r Right) allows(rule rbacv1.PolicyRule) bool {
	covered, _ := validation.Covers([]rbacv1.PolicyRule{rule}, []rbacv1.PolicyRule{{
		Verbs: []string{r.Verb}, APIGroups: []string{v1beta1.GroupName}, Resources: []string{r.Resource}, ResourceNames: []string{r.Name},
	}})
	return covered
}

// attributes are how an API server is asked about the right.
func (r Right) attributes() *authorizationv1.ResourceAttributes {
	out := &authorizationv1.ResourceAttributes{Verb: r.Verb, Group: v1beta1.GroupName, Version: v1beta1.SchemeGroupVersion.Version, Name: r.Name}
	switch r.Resource {
	case setClusters:
		out.Resource, out.Subresource = sets, "clusters"
	case setJoin:
		out.Resource, out.Subresource = sets, "join"
	default:
		out.Resource = r.Resource
	}
	return out
}
