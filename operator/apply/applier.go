package apply

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

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

func (a *Applier) remember(reference operatorv1alpha1.ObjectReference, known memo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.memory[reference] = known
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

// forget drops what is remembered of an object.
func (a *Applier) forget(reference operatorv1alpha1.ObjectReference) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.memory, reference)
}
