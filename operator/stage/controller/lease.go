package controller

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
)

// The operator makes the Lease, which the controller may only change: so the Lease has
// an owner, goes with the Deployment, and does not come back when it is deleted while the
// last replica still runs. What replicas write into it every two seconds is no concern of
// the operator's; it applies nothing but who owns it.

// Made names the objects of the controller that are rendered as no manifest, as long as
// the controller is: its Lease, and the Secret that cert-manager makes of its certificate
// in an independent registry. Once they are none of these, they are pruned.
func Made(o *operand.Objects) []operatorv1alpha1.ObjectReference {
	var out []operatorv1alpha1.ObjectReference
	if rendered(o) >= 0 {
		out = append(out, Lease(o))
	}
	if certificate(o) != nil {
		out = append(out, operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: o.Registry.Namespace, Name: o.Name(contract.ControllerSuffix)})
	}
	return out
}

// lease reads the Lease from the host cluster, nil when there is none: the cache has
// neither who holds it nor what is reported.
func (s *Stage) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := s.Live.Get(ctx, s.Key(contract.ControllerSuffix), lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return lease, err
}

// applyLease makes the Lease, or makes it the registry's again where its labels are gone.
// One that is not the operator's is an error: two programs must not share it.
func (s *Stage) applyLease(ctx context.Context) error {
	desired, err := s.desiredLease()
	if err != nil {
		return err
	}
	if err := s.Enlist(ctx, desired); err != nil {
		return err
	}
	current, err := s.lease(ctx)
	if err != nil {
		return err
	}
	if current != nil && apply.Owner(current) == s.Owner() && len(current.OwnerReferences) > 0 && labeled(current, desired) {
		return nil
	}
	return s.Writer().ApplyFrom(ctx, nil, desired)
}

func (s *Stage) desiredLease() (*unstructured.Unstructured, error) {
	lease := &coordinationv1.Lease{ObjectMeta: s.Meta(contract.ControllerSuffix, operand.ComponentController)}
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	desired, err := operand.Unstructured(lease)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(desired.Object, "spec") // the controller's own
	return desired, nil
}

// labeled reports whether an object has all labels of another one.
func labeled(object, desired client.Object) bool {
	have := object.GetLabels()
	for key, value := range desired.GetLabels() {
		if have[key] != value {
			return false
		}
	}
	return true
}
