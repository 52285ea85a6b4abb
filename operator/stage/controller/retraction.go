package controller

import (
	"context"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Retraction takes back what the controller has reported of clusters, once none runs any
// more: its last word would else pass for what is true now. The Lease says that there was
// one. It stays in the inventory until nothing is left to take back, so that an operator
// that was killed meanwhile continues.
type Retraction struct {
	*operand.Objects
	// Awaits says what has to be before clients reach this registry, and no other one;
	// empty when they do.
	Awaits string
	// Step takes reports back for a while, and reports whether none is left.
	Step func(context.Context) (complete bool, err error)
}

// Run is done when there is nothing to take back. Its verdict never blocks anything else.
func (r Retraction) Run(ctx context.Context) verdict.Verdict {
	if rendered(r.Objects) >= 0 || !slices.Contains(r.Registry.Status.Inventory, Lease(r.Objects)) {
		return done
	}
	pods, err := r.Pods(ctx, operand.ComponentController)
	if err != nil {
		return verdict.Failed(err)
	}
	left := operand.Running(pods)
	switch {
	case r.ReadOnly():
		return retracting("Waiting until " + r.ReadOnlyUntil()).In(verdict.Vigil)
	case len(left) > 0:
		return retracting("Waiting for pod " + left[0].Name + " to terminate")
	case r.Awaits != "":
		return retracting("Waiting for " + r.Awaits)
	}
	switch complete, err := r.Step(ctx); {
	case err != nil:
		return retracting("The operator will retry: " + err.Error()).In(verdict.Backstop)
	case !complete:
		return retracting("Some are left").In(verdict.AtOnce)
	}
	return done
}

func retracting(state string) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "the controller is removed, and its reports of clusters are taken back: %s", state)
}

// Lease is the Lease of the controller as the inventory names it.
func Lease(o *operand.Objects) operatorv1alpha1.ObjectReference {
	return operatorv1alpha1.ObjectReference{Group: coordinationv1.GroupName, Kind: "Lease", Namespace: o.Registry.Namespace, Name: o.Name(contract.ControllerSuffix)}
}
