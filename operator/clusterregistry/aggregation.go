package clusterregistry

import (
	"fmt"
	"slices"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

// AllNamespaces in Reconciler.AggregatedNamespaces stands for every namespace.
const AllNamespaces = "*"

// MayAggregate reports whether registries of a namespace may be a part of the
// host's API. That gives them a whole API group of the host and, through it, the
// requests of all its users: more than the right to create a ClusterRegistry in a
// namespace amounts to, so that an administrator of the cluster says where.
func (r *Reconciler) MayAggregate(namespace string) bool {
	return slices.Contains(r.AggregatedNamespaces, AllNamespaces) || slices.Contains(r.AggregatedNamespaces, namespace)
}

// aggregation returns whether the registry may be a part of the host's API. One that is installed keeps serving, since the host would suffer
// without it, but it is not changed.
func (r *Reconciler) aggregation(s *scope) verdict.Verdict {
	namespace := s.registry.Namespace
	if s.registry.Spec.Mode != operatorv1alpha1.ModeAggregated || r.MayAggregate(namespace) {
		return done
	}
	what := "nothing is installed"
	if s.installed() {
		what = "the registry keeps serving, but is no longer changed, not even repaired"
	}
	return verdict.Waiting(operatorv1alpha1.ReasonAggregationNotAllowed, "mode Aggregated is not allowed in namespace %s, because it would give the namespace the host cluster's API group %s: %s. "+
		"To allow it, an administrator of the cluster adds %s to the operator's variable AGGREGATED_NAMESPACES, in its Deployment or, with OLM, in spec.config.env of its Subscription. Mode Independent needs no permission",
		namespace, registryGroup, what, namespace).In(resync).DegradedIf(s.installed())
}

// notAggregated records that the registry may not be a part of the host's API. What
// is wrong with the API of one that keeps serving comes first.
func (s *scope) notAggregated() {
	known := s.results[operatorv1alpha1.ConditionAPIServiceReady]
	if known.Complete() {
		known = s.aggregation
	} else {
		known.Message = fmt.Sprintf("%s; %s", known.Message, s.aggregation.Message)
	}
	s.results[operatorv1alpha1.ConditionAPIServiceReady] = known
}

// halted returns why nothing is to be changed, and what ends that; an empty reason
// when changes may be made.
func (s *scope) halted() (reason, until string) {
	switch {
	case s.registry.Spec.Paused:
		return operatorv1alpha1.ReasonPaused, "spec.paused is false"
	case !s.aggregation.Complete():
		return s.aggregation.Reason, "mode Aggregated is allowed in namespace " + s.registry.Namespace
	}
	return "", ""
}
