package clusterregistry

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// writer makes the changes of a pass. That of a read-only one can't: every change is
// an error, which a stage that only observes then ignores by unlessReadOnly.
func (r *Reconciler) writer(s *scope) apply.Writer {
	if s.readOnly {
		return apply.ReadOnly{}
	}
	return r.Applier
}

// apply applies objects. What is new is in the inventory before it is made, so that a
// crash leaves nothing unknown behind.
func (r *Reconciler) apply(ctx context.Context, s *scope, objects ...*unstructured.Unstructured) error {
	if err := r.enlist(ctx, s, objects...); err != nil {
		return err
	}
	for _, object := range objects {
		if lacks := s.rendered.Lacks(object); lacks != "" {
			return fmt.Errorf("%s is not applied: it would publish an empty bundle of CA certificates (%s)", apply.Reference(object), lacks)
		}
		if err := r.writer(s).ApplyFrom(ctx, nil, object); err != nil {
			return err
		}
	}
	return nil
}

// enlist makes objects the registry's own before they are made.
func (r *Reconciler) enlist(ctx context.Context, s *scope, objects ...*unstructured.Unstructured) error {
	if err := r.writer(s).Err(); err != nil {
		return err
	}
	inventory := s.registry.Status.Inventory
	for _, object := range objects {
		if reference := apply.Reference(object); !slices.Contains(inventory, reference) {
			inventory = append(slices.Clone(inventory), reference)
		}
		s.own(object)
	}
	if len(inventory) == len(s.registry.Status.Inventory) {
		return nil
	}
	return r.writeInventory(ctx, s, inventory)
}

// applied reads the only object of a stage that has the kind of into, as it is
// after it was applied. Until the cache has that, it would show what was
// before; and there may be none, when nothing may be made at the moment.
func (r *Reconciler) applied(ctx context.Context, s *scope, stage render.Stage, into client.Object) verdict.Verdict {
	kind, err := apiutil.GVKForObject(into, r.Client.Scheme())
	if err != nil {
		return verdict.Failed(err)
	}
	i := slices.IndexFunc(s.rendered.Stages[stage], func(o *unstructured.Unstructured) bool { return o.GroupVersionKind() == kind })
	wanted := s.rendered.Stages[stage][i]
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(wanted), into)
	switch {
	case apierrors.IsNotFound(err):
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "%s %s does not exist yet", kind.Kind, wanted.GetName()).In(verdict.Soon)
	case err != nil:
		return verdict.Failed(err)
	case r.Applier.Behind(wanted, into):
		return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "%s %s was changed just now", kind.Kind, wanted.GetName()).In(time.Second).DegradedIf(s.installed())
	}
	return done
}

// own makes an object go with the registry. What is elsewhere can't be owned,
// and what is retained must not be.
func (s *scope) own(object *unstructured.Unstructured) {
	if object.GetNamespace() != s.registry.Namespace || object.GetAnnotations()[operatorv1alpha1.AnnotationRetain] != "" {
		return
	}
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(s.registry, operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistry"))})
}

// writeInventory writes nothing of the status but the inventory.
func (r *Reconciler) writeInventory(ctx context.Context, s *scope, inventory []operatorv1alpha1.ObjectReference) error {
	before := &operatorv1alpha1.ClusterRegistry{}
	before.Name, before.Namespace = s.registry.Name, s.registry.Namespace
	before.Status.Inventory = s.before.Inventory
	after := before.DeepCopy()
	after.Status.Inventory = inventory
	if err := r.Client.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return err
	}
	s.registry.Status.Inventory, s.before.Inventory = inventory, inventory
	return nil
}

// prune deletes what is in the inventory and no longer rendered.
func (r *Reconciler) prune(ctx context.Context, s *scope) error {
	wanted := map[operatorv1alpha1.ObjectReference]bool{}
	for _, object := range s.rendered.Objects() {
		wanted[apply.Reference(object)] = true
	}
	for _, reference := range s.made() {
		wanted[reference] = true
	}
	var left []operatorv1alpha1.ObjectReference
	for _, reference := range s.registry.Status.Inventory {
		if !wanted[reference] {
			gone, err := r.writer(s).Delete(ctx, reference, s.owner())
			if err != nil {
				return err
			}
			if gone {
				continue
			}
		}
		left = append(left, reference)
	}
	s.registry.Status.Inventory = left
	return nil
}

// made are the objects that no manifest has.
func (s *scope) made() []operatorv1alpha1.ObjectReference {
	reference := func(kind, suffix string) operatorv1alpha1.ObjectReference {
		return operatorv1alpha1.ObjectReference{Kind: kind, Namespace: s.registry.Namespace, Name: s.registry.Name + suffix}
	}
	var out []operatorv1alpha1.ObjectReference
	if s.registry.Spec.Etcd.External == nil {
		out = append(out, s.recordReference(), reference("PersistentVolumeClaim", contract.SnapshotsSuffix))
	}
	if s.registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		out = append(out, reference("Secret", contract.KubeconfigSuffix))
	}
	return out
}

// owner is the registry as its objects name it.
func (s *scope) owner() string { return s.registry.Namespace + "/" + s.registry.Name }
