package clusterregistry

import (
	"fmt"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/stage/apiservice"
	"github.com/clusterregistry/operator/operator/verdict"
)

// aggregation returns whether the registry may be a part of the host's API. One that is installed keeps serving, since the host would suffer
// without it, but it is not changed.
func (r *Reconciler) aggregation(s *scope) verdict.Verdict {
	namespace := s.Registry.Namespace
	if s.Registry.Spec.Mode != operatorv1alpha1.ModeAggregated || r.MayAggregate(namespace) {
		return done
	}
	what := "nothing is installed"
	if s.Installed() {
		what = "the registry keeps serving, but is no longer changed, not even repaired"
	}
	return verdict.Waiting(operatorv1alpha1.ReasonAggregationNotAllowed, "mode Aggregated is not allowed in namespace %s, because it would give the namespace the host cluster's API group %s: %s. "+
		"To allow it, an administrator of the cluster adds %s to the operator's variable AGGREGATED_NAMESPACES, in its Deployment or, with OLM, in spec.config.env of its Subscription. Mode Independent needs no permission",
		namespace, apiservice.Group, what, namespace).In(verdict.Resync).DegradedIf(s.Installed())
}

// notAggregated records that the registry may not be a part of the host's API. What
// is wrong with the API of one that keeps serving comes first.
func (s *scope) notAggregated() {
	known := s.verdicts[operatorv1alpha1.ConditionAPIServiceReady]
	if known.Complete() {
		known = s.Aggregation
	} else {
		known.Message = fmt.Sprintf("%s; %s", known.Message, s.Aggregation.Message)
	}
	s.verdicts[operatorv1alpha1.ConditionAPIServiceReady] = known
}
