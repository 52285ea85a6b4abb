package clusterprofile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/internal/contract"
)

// crd is where users get the CRD.
const crd = "the CRD clusterprofiles.multicluster.x-k8s.io of sigs.k8s.io/cluster-inventory-api v0.1.3"

// closed returns why nothing is published in the namespace; nil when it is open.
func (p *publisher) closed(ctx context.Context) *verdict {
	if v := p.barred(ctx); v != nil {
		return v
	}
	return p.unserved()
}

// barred returns why the namespace may not be written to. That of the registry always
// may.
func (p *publisher) barred(ctx context.Context) *verdict {
	if p.Namespace == p.Source.Namespace {
		return nil
	}
	key := contract.NamespaceLabel(p.Registry)
	namespace, err := p.Namespaces.Get(ctx, p.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &verdict{state: contract.FunctionRefused, message: fmt.Sprintf("There is no namespace %[1]q to publish ClusterProfiles in. Create it and open it to this registry: kubectl create namespace %[1]s; kubectl label namespace %[1]s %[2]s=%[3]s", p.Namespace, key, p.Source.Namespace)}
	case apierrors.IsForbidden(err):
		return &verdict{state: contract.FunctionRefused, message: fmt.Sprintf("The controller may not read namespace %q, so that no ClusterProfile is written there: there is none, or the RoleBinding of the controller is not there (any more): %v.", p.Namespace, err)}
	case err != nil:
		return &verdict{state: contract.FunctionFailing, passing: true, message: fmt.Sprintf("Namespace %q can't be read: %v.", p.Namespace, err)}
	case namespace.DeletionTimestamp != nil:
		return &verdict{state: contract.FunctionFailing, message: fmt.Sprintf("Namespace %q is being deleted: no ClusterProfiles are published there until it is made again.", p.Namespace)}
	case namespace.Labels[key] != p.Source.Namespace:
		return &verdict{state: contract.FunctionRefused, message: fmt.Sprintf("Namespace %[1]q is not open to this registry, so that no ClusterProfile is written there. An administrator opens it: kubectl label namespace %[1]s %[2]s=%[3]s", p.Namespace, key, p.Source.Namespace)}
	}
	return nil
}

// unserved returns why there are no profiles in the host cluster.
func (p *publisher) unserved() *verdict {
	version := Resource.GroupVersion().String()
	served, err := p.Discovery.ServerResourcesForGroupVersion(version)
	if err == nil && slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == Resource.Resource }) {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return &verdict{state: contract.FunctionFailing, passing: true, message: fmt.Sprintf("Whether the host cluster serves %s is not known: %v.", version, err)}
	}
	if others := p.otherVersions(); len(others) > 0 {
		return &verdict{state: contract.FunctionFailing, message: fmt.Sprintf("The host cluster serves %s as %s alone, and ClusterProfiles are published as %s: install %s, or a release of this controller that knows the other version.", Resource.Group, strings.Join(others, ", "), Resource.Version, crd)}
	}
	return &verdict{state: contract.FunctionFailing, message: fmt.Sprintf("The host cluster has no ClusterProfiles (%s): install %s.", version, crd)}
}

// otherVersions returns those that the API group is served in, without the one that is
// known.
func (p *publisher) otherVersions() (out []string) {
	groups, err := p.Discovery.ServerGroups()
	if err != nil {
		return nil
	}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if group.Name == Resource.Group && version.Version != Resource.Version {
				out = append(out, version.Version)
			}
		}
	}
	return out
}
