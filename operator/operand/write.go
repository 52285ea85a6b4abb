package operand

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
)

// Apply applies objects. What is new is in the inventory before it is made, so that a
// crash leaves nothing unknown behind.
func (o *Objects) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	if err := o.Enlist(ctx, objects...); err != nil {
		return err
	}
	for _, object := range objects {
		if lacks := o.Rendered.Lacks(object); lacks != "" {
			return fmt.Errorf("%s is not applied: it would publish an empty bundle of CA certificates (%s)", apply.Reference(object), lacks)
		}
		if err := o.Writer().ApplyFrom(ctx, nil, object); err != nil {
			return err
		}
	}
	return nil
}

// Enlist makes objects the registry's own before they are made.
func (o *Objects) Enlist(ctx context.Context, objects ...*unstructured.Unstructured) error {
	if err := o.Writer().Err(); err != nil {
		return err
	}
	inventory := o.Registry.Status.Inventory
	for _, object := range objects {
		if reference := apply.Reference(object); !slices.Contains(inventory, reference) {
			inventory = append(slices.Clone(inventory), reference)
		}
		o.SetOwner(object)
	}
	if len(inventory) == len(o.Registry.Status.Inventory) {
		return nil
	}
	return o.WriteInventory(ctx, inventory)
}

// SetOwner makes an object go with the registry. What is elsewhere can't be owned, and what is
// retained must not be.
func (o *Objects) SetOwner(object *unstructured.Unstructured) {
	if object.GetNamespace() != o.Registry.Namespace || object.GetAnnotations()[operatorv1alpha1.AnnotationRetain] != "" {
		return
	}
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(o.Registry, operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistry"))})
}

// WriteInventory writes nothing of the status but the inventory.
func (o *Objects) WriteInventory(ctx context.Context, inventory []operatorv1alpha1.ObjectReference) error {
	if err := o.Writer().Err(); err != nil {
		return err
	}
	before := &operatorv1alpha1.ClusterRegistry{}
	before.Name, before.Namespace = o.Registry.Name, o.Registry.Namespace
	before.Status.Inventory = o.Before.Inventory
	after := before.DeepCopy()
	after.Status.Inventory = inventory
	if err := o.Client.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return err
	}
	o.Registry.Status.Inventory, o.Before.Inventory = inventory, inventory
	return nil
}

// Prune deletes what is in the inventory and neither rendered nor among what is made
// without a manifest. What can't be deleted keeps nothing else from it, and what is gone leaves
// the inventory whatever becomes of the rest.
func (o *Objects) Prune(ctx context.Context, made ...operatorv1alpha1.ObjectReference) error {
	if err := o.Writer().Err(); err != nil {
		return err
	}
	desired := map[operatorv1alpha1.ObjectReference]bool{}
	for _, object := range o.Rendered.Objects() {
		desired[apply.Reference(object)] = true
	}
	for _, reference := range made {
		desired[reference] = true
	}
	var left []operatorv1alpha1.ObjectReference
	var failed []error
	for _, reference := range o.Registry.Status.Inventory {
		if !desired[reference] {
			gone, err := o.Writer().Delete(ctx, reference, o.Owner())
			if err != nil {
				failed = append(failed, err)
			} else if gone {
				continue
			}
		}
		left = append(left, reference)
	}
	o.Registry.Status.Inventory = left
	if len(failed) > 1 {
		return fmt.Errorf("%w (and %d more can't be deleted)", failed[0], len(failed)-1)
	}
	return errors.Join(failed...)
}

// Unstructured returns a typed object as one that can be applied.
func Unstructured(object client.Object) (*unstructured.Unstructured, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(tree, "metadata", "creationTimestamp")
	delete(tree, "status")
	return &unstructured.Unstructured{Object: tree}, nil
}
