package clusterregistry

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/permission"
)

// A Trigger says which registries are reconciled when an object of a kind changes.
type Trigger struct {
	// Kind is an empty object of the kind, as the cache holds it.
	Kind client.Object
	// Calls returns the registries that an object is about.
	Calls handler.MapFunc
	// Passes are the changes that count.
	Passes predicate.Predicate
}

// Of returns the registries that a change calls for. Before is nil where the object is new, and
// after where it is gone.
func (t Trigger) Of(ctx context.Context, before, after client.Object) []reconcile.Request {
	switch {
	case before == nil && t.Passes.Create(event.CreateEvent{Object: after}):
		return t.Calls(ctx, after)
	case before != nil && after == nil && t.Passes.Delete(event.DeleteEvent{Object: before}):
		return t.Calls(ctx, before)
	case before != nil && after != nil && t.Passes.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}):
		calls := t.Calls(ctx, before)
		for _, request := range t.Calls(ctx, after) {
			if !slices.Contains(calls, request) {
				calls = append(calls, request)
			}
		}
		return calls
	}
	return nil
}

// every lets all changes pass.
var every = predicate.Funcs{}

// reported lets the changes of a Lease pass that tell something new.
var reported = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return informers.Reported(e.ObjectOld, e.ObjectNew) }}

// Triggers returns what has registries be reconciled, that of the registries themselves first.
// What the host cluster may not serve yet is handed to late when it does, again when that
// failed, and then no more.
func (r *Reconciler) Triggers(late func(Trigger) error) []Trigger {
	r.certManager.Watch = func() error {
		for _, kind := range informers.Issued() {
			if err := late(Trigger{kind, registryOf, every}); err != nil {
				return err
			}
		}
		return nil
	}
	r.backupKind.Watch = func() error {
		return late(Trigger{&operatorv1alpha1.ClusterRegistryBackup{}, r.savedBy, every})
	}
	out := []Trigger{
		{&operatorv1alpha1.ClusterRegistry{}, itself, predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})},
		{informers.CertificatesCRD(), r.all, every},
		{informers.Lease(), registryOf, reported},
	}
	for _, kind := range informers.Owned() {
		out = append(out, Trigger{kind, registryOf, every})
	}
	if len(r.Managed) == 0 {
		out = append(out, r.terminatingNamespaces(), Trigger{informers.Namespace(), permission.OpenedTo(r.Client), permission.Opens})
	}
	return out
}

// itself returns the registry that an object is.
func itself(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
}
