package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Delete deletes an object that belongs to the registry that owner names, with
// namespace and name; one that does not is let be. It returns true when there is
// nothing left to wait for.
func (a *Applier) Delete(ctx context.Context, reference operatorv1alpha1.ObjectReference, owner string) (gone bool, err error) {
	a.forget(reference)
	mapping, err := a.client.RESTMapper().RESTMapping(schema.GroupKind{Group: reference.Group, Kind: reference.Kind})
	if meta.IsNoMatchError(err) {
		return true, nil // and with the kind went its objects
	}
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", reference, err)
	}
	object, err := a.readLive(ctx, mapping.GroupVersionKind, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name})
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", reference, err)
	}
	if object == nil || !Belongs(object, owner) {
		return true, nil
	}
	if object.GetDeletionTimestamp() != nil {
		return false, nil
	}
	uid := object.GetUID()
	err = a.client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
	if err := client.IgnoreNotFound(err); err != nil {
		return false, fmt.Errorf("delete %s: %w", reference, err)
	}
	return false, nil
}
