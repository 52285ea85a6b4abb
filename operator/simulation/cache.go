package simulation

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/clusterregistry"
	"github.com/clusterregistry/operator/operator/informers"
)

// cache is what the operator has heard of the host cluster: of each kind, all up to some change.
type cache struct {
	host    *host
	objects map[id]*stored
	// late are the changes of a kind that are to be delivered, in their order, of those kinds that
	// are watched.
	late map[schema.GroupKind][]change
	// triggers are those of a kind, as the operator watches it.
	triggers map[schema.GroupKind][]clusterregistry.Trigger
}

// onlyRead leaves of an object what the operator's cache holds.
var onlyRead = informers.Options(nil).DefaultTransform

// always are the kinds that are held whatever their labels say.
var always = map[string]bool{"ClusterRegistry": true, "ClusterRegistryBackup": true, "CustomResourceDefinition": true, "Namespace": true, "Node": true, "APIService": true}

// selected reports whether the cache holds an object.
func selected(object *stored) bool {
	return object != nil && (always[object.kind.Kind] || object.GetLabels()[operatorv1alpha1.LabelManagedBy] == operatorv1alpha1.ManagedBy)
}

// newCache returns one that hears of changes from now on, in place of the one before.
func newCache(h *host) *cache {
	c := &cache{h, map[id]*stored{}, map[schema.GroupKind][]change{}, map[schema.GroupKind][]clusterregistry.Trigger{}}
	h.hears = func(kind schema.GroupKind, became change) {
		if late, watched := c.late[kind]; watched {
			c.late[kind] = append(late, became)
		}
	}
	return c
}

// watch has a trigger called from now on, and calls it for what there is.
func (c *cache) watch(ctx context.Context, trigger clusterregistry.Trigger) (calls []reconcile.Request) {
	kind, err := apiutil.GVKForObject(trigger.Kind, scheme)
	if err != nil {
		panic(err) // all kinds are known
	}
	c.start(kind.GroupKind())
	c.triggers[kind.GroupKind()] = append(c.triggers[kind.GroupKind()], trigger)
	for _, object := range c.of(kind.GroupKind()) {
		calls = append(calls, trigger.Of(ctx, nil, held(trigger, object))...)
	}
	return calls
}

// start has the cache hold a kind, as it is now.
func (c *cache) start(kind schema.GroupKind) {
	if _, started := c.late[kind]; started {
		return
	}
	c.late[kind] = nil
	for _, object := range c.host.list(kind, "") {
		if selected(object) {
			c.objects[object.id] = object
		}
	}
}

// of returns what is held of a kind, by names.
func (c *cache) of(kind schema.GroupKind) (out []*stored) {
	for key, object := range c.objects {
		if key.kind == kind {
			out = append(out, object)
		}
	}
	slices.SortFunc(out, func(a, b *stored) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return out
}

// held returns an object as a trigger is given it, nothing for one that is not held.
func held(trigger clusterregistry.Trigger, object *stored) client.Object {
	if !selected(object) {
		return nil
	}
	kind := trigger.Kind
	if _, is := kind.(*operatorv1alpha1.ClusterRegistryBackup); is { // as trees, which need not be decoded
		kind = &unstructured.Unstructured{}
	}
	left, err := object.as(kind, true)
	if err != nil {
		panic(err)
	}
	return left
}

// behind returns the kinds of which changes are to be delivered, by names.
func (c *cache) behind() (out []schema.GroupKind) {
	for kind, late := range c.late {
		if len(late) > 0 {
			out = append(out, kind)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// deliver delivers the next change of a kind, and returns which registries it calls for.
func (c *cache) deliver(ctx context.Context, kind schema.GroupKind) (calls []reconcile.Request) {
	next := c.late[kind][0]
	c.late[kind] = c.late[kind][1:]
	switch {
	case selected(next.after):
		c.objects[next.after.id] = next.after
	case next.before != nil:
		delete(c.objects, next.before.id)
	}
	for _, trigger := range c.triggers[kind] {
		before, after := held(trigger, next.before), held(trigger, next.after)
		if before != nil || after != nil {
			calls = append(calls, trigger.Of(ctx, before, after)...)
		}
	}
	return calls
}

// holds reports whether an object is read from the cache: Secrets and trees are not.
func (c *cache) holds(object client.Object) bool {
	kind, err := apiutil.GVKForObject(object, scheme)
	_, tree := object.(*unstructured.Unstructured)
	return err == nil && kind.Kind != "Secret" && !tree
}

func (c *cache) get(key client.ObjectKey, object client.Object) error {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return err
	}
	c.start(kind.GroupKind())
	key2 := id{kind.GroupKind(), key.Namespace, key.Name}
	found := c.objects[key2]
	if found == nil {
		return notFound(key2)
	}
	return fill(object, found, true)
}

func (c *cache) list(list client.ObjectList, options ...client.ListOption) error {
	kind, err := kindOfList(list)
	if err != nil {
		return err
	}
	c.start(kind.GroupKind())
	return listed(list, kind, c.of(kind.GroupKind()), true, options...)
}
