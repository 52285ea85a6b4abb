package export

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/controller/gate"
	"github.com/clusterregistry/operator/internal/contract"
)

// closed returns why nothing is published in the namespace; nil when it is open.
func (p *publisher) closed(ctx context.Context) *verdict {
	if v := p.barred(ctx); v != nil {
		return v
	}
	if v := p.unserved(); v != nil {
		return v
	}
	return p.bound(ctx)
}

// barred returns why the namespace may not be written to. That of the registry always
// may, unless it has more of the kind that is published.
func (p *publisher) barred(ctx context.Context) *verdict {
	if p.Namespace == p.Source.Namespace {
		if p.kind.Private {
			return &verdict{state: contract.FunctionRefused, message: fmt.Sprintf("No %s are published in namespace %q, since the registry has its own keys and settings there: name another namespace in spec.controllers.exports.", p.kind.Words, p.Namespace)}
		}
		return nil
	}
	found, err := gate.Gate{Namespaces: p.Namespaces, Registry: p.Registry, Namespace: p.Source.Namespace}.Ask(ctx, p.Namespace)
	switch {
	case err != nil:
		return &verdict{state: contract.FunctionFailing, passing: true, message: fmt.Sprintf("Whether namespace %q is open is not known: %v.", p.Namespace, err)}
	case found.Closed != "":
		return &verdict{state: contract.FunctionRefused, message: fmt.Sprintf("%s. No %s are written there until then.", found.Closed, p.kind.Words)}
	case found.Terminating:
		return &verdict{state: contract.FunctionFailing, message: fmt.Sprintf("Namespace %q is being deleted: no %s are published there until it is made again.", p.Namespace, p.kind.Words)}
	}
	return nil
}

// unserved returns why there are no such objects in the host cluster. What every cluster has is
// not asked for.
func (p *publisher) unserved() *verdict {
	if p.kind.CRD == "" {
		return nil
	}
	version := p.kind.GroupVersion().String()
	served, err := p.Discovery.ServerResourcesForGroupVersion(version)
	if err == nil && slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == p.kind.Resource.Resource }) {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return &verdict{state: contract.FunctionFailing, passing: true, message: fmt.Sprintf("Whether the host cluster serves %s is not known: %v.", version, err)}
	}
	if others := p.otherVersions(); len(others) > 0 {
		return &verdict{state: contract.FunctionFailing, message: fmt.Sprintf("The host cluster serves %s as %s alone, and %s are published as %s: install %s, or a release of this controller that knows the other version.", p.kind.Group, strings.Join(others, ", "), p.kind.Words, p.kind.Version, p.kind.CRD)}
	}
	return &verdict{state: contract.FunctionFailing, message: fmt.Sprintf("The host cluster has no %s (%s): install %s.", p.kind.Words, version, p.kind.CRD)}
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
			if group.Name == p.kind.Group && version.Version != p.kind.Version {
				out = append(out, version.Version)
			}
		}
	}
	return out
}
