package accidents

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// accident is something that happens to a registry.
type accident struct {
	// name is that of the accident, damage what happens, and object what it happens to.
	name   string
	damage string
	object operatorv1alpha1.ObjectReference
	// cause lets it happen.
	cause func(context.Context) error
	// mended returns what is still not as it should be, or nil.
	mended func(context.Context) error
	// repair does what a condition asks a person to do.
	repair func(context.Context) error
}

// The kinds of damage.
const (
	deleted    = "deleted"
	orphaning  = "deleted, its pods orphaned:"
	unlabelled = "labels removed from"
	nonsense   = "nonsense in"
)

// garbage is what the content of a Secret is replaced by.
const garbage = "nonsense"

// damages returns what can happen to an object, of all the given kinds of damage
// those that apply to it.
func damages(c client.Client, object operatorv1alpha1.ObjectReference, before *unstructured.Unstructured, which ...string) (all []accident) {
	current := func(ctx context.Context) (*unstructured.Unstructured, error) {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(before.GroupVersionKind())
		return now, c.Get(ctx, client.ObjectKeyFromObject(before), now)
	}
	add := func(damage string, cause func(context.Context, *unstructured.Unstructured) error, mended func(*unstructured.Unstructured) error) {
		all = append(all, accident{
			object: object, damage: damage,
			cause: func(ctx context.Context) error { return cause(ctx, before.DeepCopy()) },
			mended: func(ctx context.Context) error {
				now, err := current(ctx)
				if err != nil {
					return err
				}
				return mended(now)
			},
			repair: func(ctx context.Context) error { return restore(ctx, c, before) },
		})
	}
	remove := func(policy metav1.DeletionPropagation) func(context.Context, *unstructured.Unstructured) error {
		return func(ctx context.Context, o *unstructured.Unstructured) error {
			return c.Delete(ctx, o, client.PropagationPolicy(policy))
		}
	}
	for _, damage := range which {
		switch {
		case damage == deleted && object.Kind == "EndpointSlice":
			all = append(all, sliceDeleted(c, object, before))
		case damage == deleted:
			add(damage, remove(metav1.DeletePropagationBackground), func(now *unstructured.Unstructured) error { return another(before, now) })
		case damage == orphaning && (object.Kind == "Deployment" || object.Kind == "StatefulSet"):
			add(damage, remove(metav1.DeletePropagationOrphan), func(now *unstructured.Unstructured) error { return another(before, now) })
		case damage == unlabelled && len(ours(before)) > 0:
			add(damage, func(ctx context.Context, o *unstructured.Unstructured) error { return unlabel(ctx, c, o) }, func(now *unstructured.Unstructured) error { return labelled(before, now) })
		case damage == nonsense && object.Kind == "Secret":
			add(damage, func(ctx context.Context, o *unstructured.Unstructured) error { return spoil(ctx, c, o) }, readable)
		}
	}
	return all
}

// another returns an error unless an object has taken the place of one before, with
// the node port that clients know: those with open connections notice no other one.
func another(before, now *unstructured.Unstructured) error {
	if now.GetUID() == before.GetUID() {
		return errors.New("the object that was deleted is still there")
	}
	if was, is := nodePorts(before), nodePorts(now); !slices.Equal(was, is) {
		return fmt.Errorf("clients know the node ports %d, and those of the new Service are %d", was, is)
	}
	return nil
}

// nodePorts returns the node ports of a Service, none of any other object.
func nodePorts(object *unstructured.Unstructured) []int64 {
	var out []int64
	ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
	for _, entry := range ports {
		if port, is := entry.(map[string]any); is {
			number, _, _ := unstructured.NestedInt64(port, "nodePort")
			out = append(out, number)
		}
	}
	return out
}

// ours are the labels by which the operator knows its objects.
func ours(object *unstructured.Unstructured) map[string]string {
	out := maps.Clone(object.GetLabels())
	maps.DeleteFunc(out, func(key, _ string) bool {
		return !strings.HasPrefix(key, "app.kubernetes.io/") && !strings.HasPrefix(key, operatorv1alpha1.GroupName+"/")
	})
	return out
}

func unlabel(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	labels := map[string]any{}
	for key := range ours(object) {
		labels[key] = nil
	}
	return patch(ctx, c, object, map[string]any{"metadata": map[string]any{"labels": labels}})
}

func labelled(before, now *unstructured.Unstructured) error {
	for key, value := range ours(before) {
		if now.GetLabels()[key] != value {
			return fmt.Errorf("label %s is missing", key)
		}
	}
	return nil
}

func spoil(ctx context.Context, c client.Client, secret *unstructured.Unstructured) error {
	data := map[string]any{}
	for key := range data64(secret) {
		data[key] = base64.StdEncoding.EncodeToString([]byte(garbage))
	}
	return patch(ctx, c, secret, map[string]any{"data": data})
}

func readable(secret *unstructured.Unstructured) error {
	for key, value := range data64(secret) {
		if content, err := base64.StdEncoding.DecodeString(value); err != nil || bytes.Equal(content, []byte(garbage)) {
			return fmt.Errorf("key %s still holds nonsense", key)
		}
	}
	return nil
}

func data64(secret *unstructured.Unstructured) map[string]string {
	data, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	return data
}

// restore brings an object back as it was, from a copy.
func restore(ctx context.Context, c client.Client, before *unstructured.Unstructured) error {
	again := before.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(again.Object, "metadata", field)
	}
	delete(again.Object, "status")
	err := c.Create(ctx, again)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	content := map[string]any{"metadata": map[string]any{"labels": before.GetLabels()}}
	if data, is := before.Object["data"]; is {
		content["data"] = data
	}
	return patch(ctx, c, before, content)
}
