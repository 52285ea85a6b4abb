package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// id is what an object is known by.
type id struct {
	kind            schema.GroupKind
	namespace, name string
}

func (i id) String() string { return i.kind.Kind + " " + i.namespace + "/" + i.name }

// change is what became of an object. There is nothing before one that is new, and nothing
// after one that is gone.
type change struct{ before, after *stored }

// host is the API server of the host cluster and what it stores.
type host struct {
	objects map[id]*stored
	// applied is what the operator has applied last, by which fields that it applies no more go.
	applied map[id]map[string]any
	// listed are lists that were made, until something of that kind changes there.
	listed map[place][]*stored
	// hears is called for each change of a kind.
	hears    func(schema.GroupKind, change)
	revision int
	// uids counts the objects that there ever were.
	uids int
	// refuses returns why a write is refused, nil where it is not.
	refuses func(id) error
}

func newHost() *host {
	return &host{objects: map[id]*stored{}, applied: map[id]map[string]any{}, listed: map[place][]*stored{}, hears: func(schema.GroupKind, change) {}, refuses: func(id) error { return nil }}
}

// place is where objects of a kind are: in a namespace, or anywhere.
type place struct {
	kind      schema.GroupKind
	namespace string
}

func idOf(tree *unstructured.Unstructured) id {
	return id{tree.GroupVersionKind().GroupKind(), tree.GetNamespace(), tree.GetName()}
}

// list returns the objects of a kind in a namespace, or in all, by their names. It is shared, and
// only read.
func (h *host) list(kind schema.GroupKind, namespace string) []*stored {
	if known, is := h.listed[place{kind, namespace}]; is {
		return known
	}
	var out []*stored
	for key, object := range h.objects {
		if key.kind == kind && (namespace == "" || key.namespace == namespace) {
			out = append(out, object)
		}
	}
	slices.SortFunc(out, func(a, b *stored) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	h.listed[place{kind, namespace}] = out
	return out
}

// changed notes that another version of an object has taken the place of one, or none has.
func (h *host) changed(key id, became change) {
	delete(h.listed, place{key.kind, ""})
	delete(h.listed, place{key.kind, key.namespace})
	h.hears(key.kind, became)
}

func resourceOf(key id) schema.GroupResource {
	return schema.GroupResource{Group: key.kind.Group, Resource: key.kind.Kind}
}

func notFound(key id) error { return apierrors.NewNotFound(resourceOf(key), key.name) }

func conflict(key id, why string) error {
	return apierrors.NewConflict(resourceOf(key), key.name, fmt.Errorf("%s", why))
}

// create stores a new object.
func (h *host) create(tree *unstructured.Unstructured) (*stored, error) {
	key := idOf(tree)
	if err := h.refuses(key); err != nil {
		return nil, err
	}
	if h.objects[key] != nil {
		return nil, apierrors.NewAlreadyExists(resourceOf(key), key.name)
	}
	tree = tree.DeepCopy()
	h.uids++
	tree.SetUID(types.UID("uid-" + strconv.Itoa(h.uids)))
	tree.SetCreationTimestamp(metav1.NewTime(time.Now()))
	tree.SetGeneration(1)
	if key.kind.Kind == "PersistentVolumeClaim" {
		tree.SetFinalizers([]string{protection})
	}
	return h.store(nil, tree), nil
}

// protection keeps a claim that a pod uses.
const protection = "kubernetes.io/pvc-protection"

// store stores a version of an object, unless nothing is new in it. What is to be deleted goes
// when nothing holds it any more.
func (h *host) store(before *stored, tree *unstructured.Unstructured) *stored {
	if before != nil {
		tree.SetResourceVersion(before.GetResourceVersion())
		if same(before.Object, tree.Object) {
			return before
		}
		if !same(decided(before.Unstructured), decided(tree)) {
			tree.SetGeneration(before.GetGeneration() + 1)
		}
	}
	h.revision++
	tree.SetResourceVersion(strconv.Itoa(h.revision))
	after := &stored{id: idOf(tree), Unstructured: tree}
	if tree.GetDeletionTimestamp() != nil && len(tree.GetFinalizers()) == 0 && !lingers(tree) {
		h.remove(after)
		return after
	}
	h.objects[after.id] = after
	h.changed(after.id, change{before, after})
	return after
}

// decided returns what is decided of an object, apart from what is observed of it.
func decided(tree *unstructured.Unstructured) map[string]any {
	out := maps.Clone(tree.Object)
	delete(out, "metadata")
	delete(out, "status")
	return out
}

// lingers reports whether a kubelet has to end an object first.
func lingers(tree *unstructured.Unstructured) bool {
	node, _, _ := unstructured.NestedString(tree.Object, "spec", "nodeName")
	return tree.GetKind() == "Pod" && node != ""
}

// remove removes an object for good.
func (h *host) remove(object *stored) {
	h.revision++
	before := h.objects[object.id]
	delete(h.objects, object.id)
	delete(h.applied, object.id)
	if before != nil {
		h.changed(object.id, change{before: before})
	}
}

// update changes an object that is there.
func (h *host) update(key id, how func(*unstructured.Unstructured) error) (*stored, error) {
	before := h.objects[key]
	if before == nil {
		return nil, notFound(key)
	}
	if err := h.refuses(key); err != nil {
		return nil, err
	}
	tree := before.DeepCopy()
	if err := how(tree); err != nil {
		return nil, err
	}
	return h.store(before, tree), nil
}

// patch merges a patch into an object, or into its status.
func (h *host) patch(key id, patch map[string]any, sub string) (*stored, error) {
	return h.update(key, func(tree *unstructured.Unstructured) error {
		version, pinned, _ := unstructured.NestedString(patch, "metadata", "resourceVersion")
		if pinned && version != tree.GetResourceVersion() {
			return conflict(key, "the object has been modified")
		}
		for field, value := range patch {
			if (field == "status") == (sub == "status") {
				tree.Object[field] = merged(tree.Object[field], value)
			}
		}
		return nil
	})
}

// merged returns a value after a JSON merge patch.
func merged(value, patch any) any {
	fields, is := patch.(map[string]any)
	if !is {
		return patch
	}
	out, was := value.(map[string]any)
	if !was {
		out = map[string]any{}
	}
	for field, inner := range fields {
		if inner == nil {
			delete(out, field)
		} else {
			out[field] = merged(out[field], inner)
		}
	}
	return out
}

// delete has an object go, unless another one has taken its place. What it has made stays where
// it is orphaned, and else goes later.
func (h *host) delete(key id, uid *types.UID, orphan bool) error {
	object := h.objects[key]
	if object == nil {
		return notFound(key)
	}
	if err := h.refuses(key); err != nil {
		return err
	}
	if uid != nil && *uid != object.GetUID() {
		return conflict(key, "the UID differs")
	}
	if orphan {
		h.orphan(object.GetUID())
	}
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	tree := object.DeepCopy()
	tree.SetDeletionTimestamp(new(metav1.NewTime(time.Now())))
	tree.SetDeletionGracePeriodSeconds(new(int64(30)))
	h.store(object, tree)
	return nil
}

// orphan leaves what an object has made without an owner.
func (h *host) orphan(owner types.UID) {
	for _, object := range h.objects {
		if object.owner() == owner {
			tree := object.DeepCopy()
			tree.SetOwnerReferences(nil)
			h.store(object, tree)
		}
	}
}

// evict deletes a pod, unless its budget has no room for that: one of a component may be down.
func (h *host) evict(key id, uid *types.UID) error {
	pod := h.objects[key]
	if pod == nil {
		return notFound(key)
	}
	component := pod.GetLabels()["app.kubernetes.io/component"]
	budget := h.objects[id{schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}, key.namespace, "fleet-" + component}]
	for _, other := range h.list(key.kind, key.namespace) {
		if other.GetLabels()["app.kubernetes.io/component"] == component && other.name != key.name && !ready(other) && ready(pod) && budget != nil {
			return apierrors.NewGenericServerResponse(http.StatusTooManyRequests, "create", resourceOf(key), key.name, "the disruption budget has no room", 0, true)
		}
	}
	return h.delete(key, uid, false)
}

// ready reports whether a pod is ready.
func ready(pod *stored) bool {
	return slices.ContainsFunc(pod.items("status", "conditions"), func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Ready" && condition["status"] == "True"
	})
}
