package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attempts is how often an object is applied again that someone else changes at
// the same time.
const attempts = 3

// write applies an object and returns what the host made of it. It is applied to
// the object that was read and to no other: one that takes its place meanwhile is
// an error. What is outside of namespaces has a name that every registry of the
// host may want, so it is created first, which only the first one can. So is what is
// to begin as first is, which may be nil.
func (a *Applier) write(ctx context.Context, first, wanted *unstructured.Unstructured, current client.Object) (*unstructured.Unstructured, error) {
	if first == nil && wanted.GetNamespace() == "" {
		first = wanted
	}
	if current == nil && first != nil {
		created, err := a.create(ctx, first)
		if err != nil {
			return nil, err
		}
		current = created
	}
	for attempt := 1; ; attempt++ {
		applied := wanted.DeepCopy()
		if current != nil {
			applied.SetUID(current.GetUID())
		}
		if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), FieldOwner, client.ForceOwnership); err != nil {
			return nil, &Unapplied{Object: Reference(wanted), Err: err}
		}
		err := a.disownCreation(ctx, applied)
		if err == nil || apierrors.IsConflict(err) && attempt == attempts {
			return applied, nil // the next time that it is applied is soon enough
		}
		if !apierrors.IsConflict(err) {
			return nil, &Unapplied{Object: Reference(wanted), Err: err}
		}
	}
}
