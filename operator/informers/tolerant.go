package informers

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Tolerant returns a cache with Options that outlives what can't be decoded. A client with Go
// types decodes a list as a whole: one custom resource that the schema lets through and the
// type does not would end the watch of all. So the custom resources are listed and watched as
// trees, and each is decoded alone. Of one that can't be, no more than the metadata is held;
// Undecodable tells it apart in a list, and Get fails.
//
// Handlers of their informers are given trees.
func Tolerant(of cache.Cache) cache.Cache { return tolerant{of} }

type tolerant struct{ cache.Cache }

// undecodableMark is an annotation of what is held, never of what is stored: onlyRead keeps no
// annotation of that name.
const undecodableMark = "operator.clusterregistry.io/undecodable"

// Undecodable reports whether an object of the cache is one of which no more than the metadata
// is known, since the rest can't be decoded.
func Undecodable(object client.Object) bool {
	_, is := object.GetAnnotations()[undecodableMark]
	return is
}

// Get reads an object. Of one that can't be decoded, the error is what the decoder says.
func (c tolerant) Get(ctx context.Context, key client.ObjectKey, out client.Object, options ...client.GetOption) error {
	kind, is := asTree(out)
	if !is {
		return c.Cache.Get(ctx, key, out, options...)
	}
	tree := &unstructured.Unstructured{}
	tree.SetGroupVersionKind(kind)
	if err := c.Cache.Get(ctx, key, tree, options...); err != nil {
		return err
	}
	if Undecodable(tree) {
		return errors.New(tree.GetAnnotations()[undecodableMark])
	}
	return decode(tree, out)
}

// List lists objects, those among them that can't be decoded by their metadata alone.
func (c tolerant) List(ctx context.Context, out client.ObjectList, options ...client.ListOption) error {
	kind, is := asTree(out)
	if !is {
		return c.Cache.List(ctx, out, options...)
	}
	trees := &unstructured.UnstructuredList{}
	trees.SetGroupVersionKind(kind)
	if err := c.Cache.List(ctx, trees, options...); err != nil {
		return err
	}
	var items []runtime.Object
	for i := range trees.Items {
		item, err := custom.New(trees.Items[i].GroupVersionKind())
		if err != nil {
			return err
		}
		if err := decode(&trees.Items[i], item.(client.Object)); err != nil {
			return err
		}
		items = append(items, item)
	}
	out.SetResourceVersion(trees.GetResourceVersion())
	return meta.SetList(out, items)
}

// GetInformer returns the informer of a kind.
func (c tolerant) GetInformer(ctx context.Context, of client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	if kind, is := asTree(of); is {
		tree := &unstructured.Unstructured{}
		tree.SetGroupVersionKind(kind)
		of = tree
	}
	return c.Cache.GetInformer(ctx, of, options...)
}

// asTree reports whether an object or a list is one of custom resources with their Go type, and
// of which kind.
func asTree(object runtime.Object) (schema.GroupVersionKind, bool) {
	switch object.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList, runtime.Unstructured:
		return schema.GroupVersionKind{}, false
	}
	kind, err := apiutil.GVKForObject(object, custom)
	return kind, err == nil
}

// onlyReadTree strips a custom resource as onlyRead does its Go type. Of one that can't be decoded
// it leaves the metadata, why, and which registry it is about.
func onlyReadTree(tree *unstructured.Unstructured) (any, error) {
	kind := tree.GroupVersionKind()
	decoded, err := custom.New(kind)
	if err != nil {
		return nil, err
	}
	object, why := decoded.(client.Object), error(nil)
	if why = decode(tree, object); why != nil {
		if object, err = metadataOf(tree); err != nil {
			return nil, err
		}
	}
	stripped, err := onlyRead(object)
	if err != nil {
		return nil, err
	}
	left := &unstructured.Unstructured{}
	if left.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(stripped); err != nil {
		return nil, err
	}
	left.SetGroupVersionKind(kind)
	if why == nil {
		return left, nil
	}
	annotations := left.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[undecodableMark] = bounded(why.Error())
	left.SetAnnotations(annotations)
	return left, unstructured.SetNestedField(left.Object, bounded(SavedBy(tree)), "spec", "registryRef", "name")
}

// metadataOf returns an object with no more than the metadata of a tree, which the host cluster
// checks itself.
func metadataOf(tree *unstructured.Unstructured) (client.Object, error) {
	object, err := custom.New(tree.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	metadata := &unstructured.Unstructured{Object: map[string]any{"metadata": tree.Object["metadata"]}}
	metadata.SetGroupVersionKind(tree.GroupVersionKind())
	return object.(client.Object), decode(metadata, object.(client.Object))
}

// SavedBy returns the registry that the tree of a ClusterRegistryBackup names, empty for none.
func SavedBy(tree *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(tree.Object, "spec", "registryRef", "name")
	return name
}
