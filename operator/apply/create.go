package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// create creates an object, unless someone else was faster.
func (a *Applier) create(ctx context.Context, wanted *unstructured.Unstructured) (client.Object, error) {
	created := wanted.DeepCopy()
	err := a.client.Create(ctx, created, FieldOwner)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return nil, fmt.Errorf("create %s: %w", Reference(wanted), err)
		}
		return created, nil
	}
	other := &metav1.PartialObjectMetadata{}
	other.SetGroupVersionKind(wanted.GroupVersionKind())
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(wanted), other); err != nil {
		return nil, fmt.Errorf("read %s, which someone has just created: %w", Reference(wanted), err)
	}
	if Owner(other) != Owner(wanted) {
		return nil, &NotOurs{Object: Reference(wanted), Owner: Owner(other)}
	}
	return other, nil
}

// disownCreation removes what the host noted about the creation of an object: the
// operator would own each field twice, and a field that is no longer applied would
// stay.
func (a *Applier) disownCreation(ctx context.Context, object *unstructured.Unstructured) error {
	all := object.GetManagedFields()
	left := slices.DeleteFunc(slices.Clone(all), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == string(FieldOwner) && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	})
	if len(left) == len(all) {
		return nil
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": left},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": object.GetResourceVersion()},
	})
	if err != nil {
		return err
	}
	return a.client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), FieldOwner)
}
