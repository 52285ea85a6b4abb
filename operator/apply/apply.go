// Package apply brings objects to the host by server-side apply, and removes
// them. What is there already as it should be causes no write. Nothing is taken
// from others: an object of the same name that is not the registry's is an error.
package apply

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// FieldOwner is the operator's name as a manager of fields.
const FieldOwner = client.FieldOwner("clusterregistry-operator")

// Applier applies objects and remembers what it applied, so that it need not do
// it again. It is safe for concurrent use.
type Applier struct {
	client client.Client
	live   client.Reader
	// metadataOnly are the kinds of which the cache has the metadata alone.
	metadataOnly map[schema.GroupKind]bool

	mu     sync.Mutex
	memory map[operatorv1alpha1.ObjectReference]memo
}

// memo is what is known of an applied object.
type memo struct {
	// wanted is the digest of what was applied, and result that of what the host
	// made of it, without what others report in it.
	wanted, result string
	version        string
}

// New returns an applier. It reads through c, which may be a cache of parts of its own
// objects, and through live where that knows nothing or something new. Of the kinds of
// metadataOnly it reads no more than the metadata through c.
func New(c client.Client, live client.Reader, metadataOnly ...schema.GroupKind) *Applier {
	a := &Applier{client: c, live: live, metadataOnly: map[schema.GroupKind]bool{}, memory: map[operatorv1alpha1.ObjectReference]memo{}}
	for _, kind := range metadataOnly {
		a.metadataOnly[kind] = true
	}
	return a
}

// NotOurs is the error of an object that exists, but belongs to someone else.
type NotOurs struct {
	// Object is the object in the way.
	Object operatorv1alpha1.ObjectReference
	// Owner is the registry that it belongs to, empty when it is no registry's.
	Owner string
}

// Error says what to do.
func (e *NotOurs) Error() string {
	owner := "was not made by the operator"
	if e.Owner != "" {
		owner = "belongs to ClusterRegistry " + e.Owner
	}
	return fmt.Sprintf("%s is in the way: it %s; delete it, or give the registry another name", e.Object, owner)
}

// Reason is the reason of the condition that such an error becomes.
func (e *NotOurs) Reason() string { return operatorv1alpha1.ReasonNotOwned }

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
	applied, err := a.write(ctx, first, wanted, current)
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

func (a *Applier) remember(reference operatorv1alpha1.ObjectReference, known memo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.memory[reference] = known
}

// Behind reports whether an object, as it was read from the cache, is older than
// what was applied last.
func (a *Applier) Behind(wanted *unstructured.Unstructured, current client.Object) bool {
	return a.known(wanted).after(current)
}

// Pending reports whether an object is not what was applied last, as far as is
// known: after a restart, all are pending until they are applied.
func (a *Applier) Pending(wanted *unstructured.Unstructured) bool {
	return a.known(wanted).wanted != digest(wanted.Object)
}

// known returns what is known of an object, nothing when it was not applied.
func (a *Applier) known(object *unstructured.Unstructured) memo {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.memory[Reference(object)]
}

// after reports whether an object was applied after it was in the given state.
func (m memo) after(state client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(state.GetResourceVersion(), m.version)
	return err == nil && order < 0
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

// readLive returns an object as the host has it, nil when there is none, and no
// more than its metadata when its kind is not known here.
func (a *Applier) readLive(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
	var object client.Object
	if empty, err := a.client.Scheme().New(kind); err == nil {
		object = empty.(client.Object)
	} else {
		partial := &metav1.PartialObjectMetadata{}
		partial.SetGroupVersionKind(kind)
		object = partial
	}
	err := a.live.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}
