// Package apply brings objects to the host by server-side apply, and removes
// them. What is there already as it should be causes no write. Nothing is taken
// from others: an object of the same name that is not the registry's is an error.
package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Apply applies objects in their order and stops at the first error.
func (a *Applier) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := a.ApplyFrom(ctx, nil, object); err != nil {
			return err
		}
	}
	return nil
}

// ApplyFrom applies an object. Where there is none, it is created as first is, unless
// that is nil, and then applied: what only first has is asked for once, has no
// owner then, and is left to the host as if the host had chosen it.
func (a *Applier) ApplyFrom(ctx context.Context, first, wanted *unstructured.Unstructured) error {
	reference := Reference(wanted)
	current, err := a.read(ctx, wanted)
	if err != nil {
		return fmt.Errorf("read %s: %w", reference, err)
	}
	if current != nil && !Belongs(current, Owner(wanted)) {
		return &NotOurs{Object: reference, Owner: Owner(current)}
	}
	sum := digest(wanted.Object)
	if current != nil && a.done(wanted, sum, current) {
		return nil
	}
	if current != nil && asked(wanted, sum, current) {
		a.remember(reference, memo{wanted: sum, result: content(current), version: current.GetResourceVersion()})
		return nil
	}
	applied, err := a.write(ctx, first, marked(wanted, sum), current)
	if err != nil {
		return err
	}
	result, err := a.typed(applied)
	if err != nil {
		return fmt.Errorf("apply %s: %w", reference, err)
	}
	logf.FromContext(ctx).Info("Applied", "object", reference.String())
	a.remember(reference, memo{wanted: sum, result: content(result), version: result.GetResourceVersion()})
	return nil
}

// done reports whether an object is as it was after it was applied. One that the
// cache still holds in an older state counts as such.
func (a *Applier) done(wanted *unstructured.Unstructured, sum string, current client.Object) bool {
	known := a.known(wanted)
	if known.wanted != sum {
		return false
	}
	if known.version == current.GetResourceVersion() || known.after(current) {
		return true
	}
	if content(current) != known.result {
		return false
	}
	known.version = current.GetResourceVersion() // only what is not compared has changed
	a.remember(Reference(wanted), known)
	return true
}

// Behind reports whether an object, as it was read from the cache, is older than
// what was applied last.
func (a *Applier) Behind(wanted *unstructured.Unstructured, current client.Object) bool {
	return a.known(wanted).after(current)
}

// Version returns the resource version that an object had when it was applied last, empty when
// it was not since the operator started.
func (a *Applier) Version(wanted *unstructured.Unstructured) string { return a.known(wanted).version }

// Pending reports whether an object is not what was applied last, as far as is
// known: after a restart, all are pending until they are applied.
func (a *Applier) Pending(wanted *unstructured.Unstructured) bool {
	return a.known(wanted).wanted != digest(wanted.Object)
}

// read returns an object as it is, nil when there is none. The cache holds the
// operator's own objects only, and of each no more than is needed. So the host is asked
// before a new one is made, when the labels do not say whose it is, and when one has
// changed.
func (a *Applier) read(ctx context.Context, wanted *unstructured.Unstructured) (client.Object, error) {
	kind := wanted.GroupVersionKind()
	var cached client.Object
	if a.metadataOnly[kind.GroupKind()] {
		partial := &metav1.PartialObjectMetadata{}
		partial.SetGroupVersionKind(kind)
		cached = partial
	} else {
		empty, err := a.client.Scheme().New(kind)
		if err != nil {
			return nil, err
		}
		cached = empty.(client.Object)
	}
	err := a.client.Get(ctx, client.ObjectKeyFromObject(wanted), cached)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	known := a.known(wanted)
	if err == nil && Owner(cached) == Owner(wanted) && (known.version == cached.GetResourceVersion() || known.after(cached)) {
		return cached, nil
	}
	return a.readLive(ctx, kind, client.ObjectKeyFromObject(wanted))
}
