package apiservice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Grace is how long the host cluster may fail to reach the servers before they count as
// down: they may just be starting.
const Grace = time.Minute

// Unregistered returns why the host does not lead to the registry by an APIService.
func Unregistered(ctx context.Context, o *operand.Objects, name string) error {
	service := &apiregistrationv1.APIService{}
	// Not from the cache, which has no managed fields to tell whose it is.
	switch err := o.Live.Get(ctx, client.ObjectKey{Name: name}, service); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("APIService %s does not exist", name)
	case err != nil:
		return err
	case !apply.Belongs(service, o.Owner()):
		return fmt.Errorf("APIService %s does not belong to the registry", name)
	}
	if v := reached(o, service); !v.Complete() {
		return errors.New(v.Message)
	}
	return nil
}

// Has reports whether a registry is registered with the host cluster, as far as its inventory says.
func Has(registry *operatorv1alpha1.ClusterRegistry) bool {
	return slices.ContainsFunc(registry.Status.Inventory, func(r operatorv1alpha1.ObjectReference) bool { return r.Kind == "APIService" })
}

// silentFor returns for how long the host cluster has not reached the servers, 0 while it does or
// does not know.
func silentFor(now time.Time, service *apiregistrationv1.APIService) time.Duration {
	for _, condition := range service.Status.Conditions {
		if condition.Type == apiregistrationv1.Available && condition.Status != apiregistrationv1.ConditionTrue {
			return now.Sub(condition.LastTransitionTime.Time)
		}
	}
	return 0
}

// reached is done when the host cluster reaches the servers, and else says what it
// reports of that.
func reached(o *operand.Objects, service *apiregistrationv1.APIService) verdict.Verdict {
	for _, condition := range service.Status.Conditions {
		if condition.Type != apiregistrationv1.Available || condition.Status == apiregistrationv1.ConditionTrue {
			continue
		}
		down := o.Now.Sub(condition.LastTransitionTime.Time)
		if down < Grace || !o.Installed() {
			return verdict.Waiting(operatorv1alpha1.ReasonNotAvailable, "kube-apiserver does not reach the servers through APIService %s: %s", service.Name, condition.Message).In(min(max(Grace-down, verdict.Soon), verdict.Backstop))
		}
		return verdict.Waiting(operatorv1alpha1.ReasonBackendDown, "kube-apiserver has not reached the servers since %s, and until it does, deletions of namespaces in the host cluster will hang: %s (APIService %s)",
			condition.LastTransitionTime.Format(time.RFC3339), condition.Message, service.Name)
	}
	if len(service.Status.Conditions) == 0 {
		return verdict.Waiting(operatorv1alpha1.ReasonNotAvailable, "kube-apiserver has not checked APIService %s yet", service.Name).In(verdict.Soon)
	}
	return done
}
