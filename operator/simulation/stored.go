package simulation

import (
	"maps"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stored is one version of an object, which never changes. Most are read many times: what is
// made of one is made once.
type stored struct {
	id
	*unstructured.Unstructured
	made made
}

// made is what was made of a version of an object, for which several requests may ask at once.
type made struct {
	lock sync.Mutex
	of   map[any]any
}

// once returns what is made of a version of an object under a key. It is shared, and only read.
func once[T any](s *stored, key any, make func() T) T {
	s.made.lock.Lock()
	known, is := s.made.of[key]
	s.made.lock.Unlock()
	if is {
		return known.(T)
	}
	out := make()
	s.made.lock.Lock()
	defer s.made.lock.Unlock()
	if s.made.of == nil {
		s.made.of = map[any]any{}
	}
	s.made.of[key] = out
	return out
}

// form is a type of objects, with all of their fields, or with those that the operator's cache
// holds.
type form struct {
	kind reflect.Type
	held bool
}

// reading is an object, or why it can't be one of that form.
type reading struct {
	object client.Object
	err    error
}

// as returns a version of an object as one of the type of another. It is shared, and only read.
func (s *stored) as(object client.Object, held bool) (client.Object, error) {
	kind := reflect.TypeOf(object)
	out := once(s, form{kind, held}, func() reading {
		if !held {
			whole := reflect.New(kind.Elem()).Interface().(client.Object)
			return reading{whole, s.decode(whole)}
		}
		whole, err := s.as(object, false)
		if err != nil {
			return reading{err: err}
		}
		left, err := onlyRead(whole.DeepCopyObject())
		if err != nil {
			return reading{err: err}
		}
		return reading{object: left.(client.Object)}
	})
	return out.object, out.err
}

// decode makes an object that which is stored.
func (s *stored) decode(object client.Object) error {
	switch into := object.(type) {
	case *unstructured.Unstructured:
		into.Object = s.Object
		return nil
	case *metav1.PartialObjectMetadata:
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": s.Object["metadata"]}, into)
		into.SetGroupVersionKind(s.GroupVersionKind())
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(s.Object, object)
}

// fill makes an object that which is stored, or what the operator's cache holds of that.
func fill(object client.Object, from *stored, held bool) error {
	known, err := from.as(object, held)
	if err != nil {
		return err
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(known.DeepCopyObject()).Elem())
	return nil
}

// owner returns the UID of the controller of an object, empty where it has none.
func (s *stored) owner() types.UID {
	return once(s, "owner", func() types.UID {
		if controller := metav1.GetControllerOf(s); controller != nil {
			return controller.UID
		}
		return ""
	})
}

// items returns a list that is stored, which is only read.
func (s *stored) items(path ...string) []any {
	found, _, _ := unstructured.NestedFieldNoCopy(s.Object, path...)
	items, _ := found.([]any)
	return items
}

// with returns a version of an object with another value of a field, of which all else is shared.
func (s *stored) with(field string, value any) *unstructured.Unstructured {
	tree := maps.Clone(s.Object)
	metadata, _ := tree["metadata"].(map[string]any)
	tree["metadata"], tree[field] = maps.Clone(metadata), value // which gets another version
	return &unstructured.Unstructured{Object: tree}
}

// same reports whether two trees are equal, of which one may share a part with the other.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, is := b.(map[string]any)
		if !is || len(a) != len(b) {
			return false
		}
		if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() {
			return true
		}
		for key, value := range a {
			if other, has := b[key]; !has || !same(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, is := b.([]any)
		if !is || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case map[string]any, []any:
		return false // which can't be compared
	}
	return a == b
}
