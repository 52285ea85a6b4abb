// Package permission decides what of the host cluster the registries of a namespace may use beyond
// that namespace, as administrators of the host cluster say: its API, and other namespaces.
package permission

import (
	"slices"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/stage/apiservice"
	"github.com/clusterregistry/operator/operator/verdict"
)

// AllNamespaces in Namespaces.Aggregated stands for every namespace.
const AllNamespaces = "*"

// Namespaces are those of the operator.
type Namespaces struct {
	// Managed are those whose registries are this operator's; none means all.
	Managed []string
	// Aggregated are those whose registries may be a part of the host's API, AllNamespaces
	// among them means all; none means no one's.
	Aggregated []string
}

// Watches reports whether the registries of a namespace are this operator's.
func (n Namespaces) Watches(namespace string) bool {
	return len(n.Managed) == 0 || slices.Contains(n.Managed, namespace)
}

// MayAggregate reports whether registries of a namespace may be a part of the
// host's API. That gives them a whole API group of the host and, through it, the
// requests of all its users: more than the right to create a ClusterRegistry in a
// namespace amounts to, so that an administrator of the cluster says where.
func (n Namespaces) MayAggregate(namespace string) bool {
	return slices.Contains(n.Aggregated, AllNamespaces) || slices.Contains(n.Aggregated, namespace)
}

// mayReach reports whether the controllers of registries in a namespace may work in other
// namespaces that are open to them. It is the same decision as MayAggregate: these namespaces
// are trusted with more than their own content.
func (n Namespaces) mayReach(namespace string) bool {
	return len(n.Managed) == 0 && n.MayAggregate(namespace)
}

// Aggregation returns whether the registry may be a part of the host's API. One that is installed
// keeps serving, since the host would suffer without it, but it is not changed. Once no server is
// ready the host suffers by it, and it is unregistered.
func (n Namespaces) Aggregation(p pass.Pass) verdict.Verdict {
	namespace := p.Registry.Namespace
	if p.Registry.Spec.Mode != operatorv1alpha1.ModeAggregated || n.MayAggregate(namespace) {
		return verdict.Verdict{}
	}
	what := "nothing is installed"
	if p.Installed() {
		what = "the registry keeps serving, but is no longer changed, not even repaired, and is unregistered once no server is ready"
	}
	return verdict.Waiting(operatorv1alpha1.ReasonAggregationNotAllowed, "mode Aggregated is not allowed in namespace %s, because it would give the namespace the host cluster's API group %s: %s. "+
		"To allow it, an administrator of the cluster adds %s to the operator's variable AGGREGATED_NAMESPACES, in its Deployment or, with OLM, in spec.config.env of its Subscription. Mode Independent needs no permission",
		namespace, apiservice.Group, what, namespace).In(verdict.Resync).DegradedIf(p.Installed())
}
