package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Reference returns the name of an object by which an inventory knows it.
func Reference(object *unstructured.Unstructured) operatorv1alpha1.ObjectReference {
	kind := object.GroupVersionKind()
	return operatorv1alpha1.ObjectReference{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Owner returns namespace and name of the registry that an object belongs to,
// or nothing.
func Owner(object client.Object) string {
	labels := object.GetLabels()
	namespace, name := labels[operatorv1alpha1.LabelNamespace], labels[operatorv1alpha1.LabelInstance]
	if labels[operatorv1alpha1.LabelManagedBy] != operatorv1alpha1.ManagedBy || namespace == "" || name == "" {
		return ""
	}
	return namespace + "/" + name
}

// Delete deletes an object that belongs to the same registry as owner says, with
// namespace and name; one that belongs to somebody else is let be. It returns
// true when there is nothing left to wait for.
func (a *Applier) Delete(ctx context.Context, reference operatorv1alpha1.ObjectReference, owner string) (gone bool, err error) {
	a.forget(reference)
	mapping, err := a.client.RESTMapper().RESTMapping(schema.GroupKind{Group: reference.Group, Kind: reference.Kind})
	if meta.IsNoMatchError(err) {
		return true, nil // and with the kind went its objects
	}
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", reference, err)
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	err = a.live.Get(ctx, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}, object)
	if apierrors.IsNotFound(err) || err == nil && Owner(object) != owner {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", reference, err)
	}
	if object.DeletionTimestamp != nil {
		return false, nil
	}
	err = a.client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &object.UID})
	if err := client.IgnoreNotFound(err); err != nil {
		return false, fmt.Errorf("delete %s: %w", reference, err)
	}
	return false, nil
}

// forget drops what is remembered of an object.
func (a *Applier) forget(reference operatorv1alpha1.ObjectReference) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.memory, reference)
}

// References returns the names of the objects in a list of a known type.
func References(list client.ObjectList, scheme *runtime.Scheme) ([]operatorv1alpha1.ObjectReference, error) {
	var out []operatorv1alpha1.ObjectReference
	err := meta.EachListItem(list, func(item runtime.Object) error {
		kind, err := apiutil.GVKForObject(item, scheme)
		if err != nil {
			return err
		}
		object := item.(client.Object)
		out = append(out, operatorv1alpha1.ObjectReference{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()})
		return nil
	})
	return out, err
}
