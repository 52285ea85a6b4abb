package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/clusterregistry/operator/internal/pages/pagestest"
)

// treeOf returns an object as the API server has it.
func treeOf(object client.Object) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	tree := &unstructured.Unstructured{Object: content}
	tree.SetGroupVersionKind(kind)
	if created, _, _ := unstructured.NestedFieldNoCopy(content, "metadata", "creationTimestamp"); created == nil {
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	}
	return tree, nil
}

// reader reads what the host cluster has.
type reader struct{ w *world }

var _ client.Reader = reader{}

// Get implements client.Reader.
func (r reader) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if err := r.w.readFails(); err != nil {
		return err
	}
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return err
	}
	r.w.asked("GET " + kind.Kind)
	key2 := id{kind.GroupKind(), key.Namespace, key.Name}
	found := r.w.host.objects[key2]
	if found == nil {
		return notFound(key2)
	}
	return fill(object, found, false)
}

// List implements client.Reader.
func (r reader) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := r.w.readFails(); err != nil {
		return err
	}
	kind, err := kindOfList(list)
	if err != nil {
		return err
	}
	r.w.asked("LIST " + kind.Kind)
	if kind.Group == registryGroup {
		return r.w.reachRegistry(true)
	}
	if err := listed(list, kind, r.w.host.list(kind.GroupKind(), ""), false, options...); err != nil {
		return err
	}
	if err := pagestest.Cut(list, options...); err != nil { // invariant 13
		r.w.fails("%s", err)
	}
	return nil
}

func kindOfList(list client.ObjectList) (schema.GroupVersionKind, error) {
	kind, err := apiutil.GVKForObject(list, scheme)
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return kind, err
}

// listed makes a list of those objects that are asked for, or of what the operator's cache holds of
// them.
func listed(list client.ObjectList, kind schema.GroupVersionKind, from []*stored, held bool, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	var out []runtime.Object
	for _, object := range from {
		if asked.Namespace != "" && object.namespace != asked.Namespace || asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		var item client.Object
		switch list.(type) {
		case *unstructured.UnstructuredList:
			item = &unstructured.Unstructured{}
		case *metav1.PartialObjectMetadataList:
			item = &metav1.PartialObjectMetadata{}
		default:
			empty, err := scheme.New(kind)
			if err != nil {
				return err
			}
			item = empty.(client.Object)
		}
		if err := fill(item, object, held); err != nil {
			return err
		}
		out = append(out, item)
	}
	return meta.SetList(list, out)
}

// writer is the operator's client, which reads from its cache. Each of its writes may fail, and
// the operator may be killed at it.
type writer struct {
	reader
	*cache
}

var _ client.Client = writer{}

// Get implements client.Reader.
func (c writer) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if !c.holds(object) {
		return c.reader.Get(ctx, key, object, options...)
	}
	return c.get(key, object)
}

// List implements client.Reader.
func (c writer) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*unstructured.UnstructuredList); is {
		return c.reader.List(ctx, list, options...)
	}
	return c.list(list, options...)
}

// written fills an object with what became of it.
func written(object client.Object, after *stored, err error) error {
	if err != nil {
		return err
	}
	return fill(object, after, false)
}

// Create implements client.Writer.
func (c writer) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	tree, err := treeOf(object)
	if err != nil {
		return err
	}
	asked := client.CreateOptions{}
	asked.ApplyOptions(options)
	if len(asked.DryRun) > 0 {
		return c.w.host.refuses(idOf(tree))
	}
	delete(tree.Object, "status")
	tree.SetManagedFields(manager)
	return c.w.write("create", idOf(tree), func() error {
		after, err := c.w.host.create(tree)
		return written(object, after, err)
	})
}

// Apply implements client.Writer.
func (c writer) Apply(_ context.Context, configuration runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	tree, is := configuration.(runtime.Unstructured)
	if !is {
		return fmt.Errorf("%T is applied", configuration)
	}
	wanted := &unstructured.Unstructured{Object: tree.UnstructuredContent()}
	c.w.checkApplied(wanted)
	return c.w.write("apply", idOf(wanted), func() error {
		after, err := c.w.host.apply(wanted)
		if err == nil {
			tree.SetUnstructuredContent(after.DeepCopy().Object)
		}
		return err
	})
}

// Delete implements client.Writer.
func (c writer) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	tree, err := treeOf(object)
	if err != nil {
		return err
	}
	asked := client.DeleteOptions{}
	asked.ApplyOptions(options)
	pinned := asked.Preconditions
	orphan := asked.PropagationPolicy != nil && *asked.PropagationPolicy == metav1.DeletePropagationOrphan
	return c.w.write("delete", idOf(tree), func() error {
		if pinned == nil {
			return c.w.host.delete(idOf(tree), nil, orphan)
		}
		return c.w.host.delete(idOf(tree), pinned.UID, orphan)
	})
}

// Patch implements client.Writer.
func (c writer) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.patch(object, patch, "")
}

func (c writer) patch(object client.Object, patch client.Patch, sub string) error {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return err
	}
	key := id{kind.GroupKind(), object.GetNamespace(), object.GetName()}
	text, err := patch.Data(object)
	if err != nil {
		return err
	}
	fields := map[string]any{}
	if err := utiljson.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("patch %s by %s: %w", key, text, err)
	}
	return c.w.write("patch "+sub, key, func() error {
		after, err := c.w.host.patch(key, fields, sub)
		return written(object, after, err)
	})
}

// Update implements client.Writer.
func (c writer) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errors.New("the operator updates nothing")
}

// DeleteAllOf implements client.Writer.
func (c writer) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errors.New("the operator deletes no collections")
}

// Scheme implements client.Client.
func (c writer) Scheme() *runtime.Scheme { return scheme }

// RESTMapper implements client.Client.
func (c writer) RESTMapper() meta.RESTMapper { return mapper }

// GroupVersionKindFor implements client.Client.
func (c writer) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(object, scheme)
}

// IsObjectNamespaced implements client.Client.
func (c writer) IsObjectNamespaced(object runtime.Object) (bool, error) {
	kind, err := apiutil.GVKForObject(object, scheme)
	return !outside[kind.Kind], err
}

// Status implements client.StatusClient.
func (c writer) Status() client.SubResourceWriter { return part{c, "status"} }

// SubResource implements client.SubResourceClientConstructor.
func (c writer) SubResource(name string) client.SubResourceClient { return part{c, name} }
