package health

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/watch"
	kubetesting "k8s.io/client-go/testing"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/clusterregistry/operator/client/clientset/versioned/fake"
	"github.com/clusterregistry/operator/client/clientset/versioned/scheme"
)

// statusSchema says how the lists of a cluster's status are merged; client-gen gives
// the fake no schema of an API that is not a part of Kubernetes.
const statusSchema = `types:
- name: io.k8s.clusterregistry.v1beta1.Cluster
  map:
    elementType: {namedType: any}
    fields:
    - {name: status, type: {namedType: status}}
- name: status
  map:
    elementType: {namedType: any}
    fields:
    - {name: conditions, type: {namedType: conditions}}
    - {name: properties, type: {namedType: named}}
    - {name: reporters, type: {namedType: reporters}}
- name: reporters
  list: {elementRelationship: associative, keys: [name], elementType: {namedType: reporter}}
- name: reporter
  map:
    elementType: {namedType: any}
    fields:
    - {name: conditions, type: {namedType: conditions}}
- name: conditions
  list: {elementRelationship: associative, keys: [type], elementType: {namedType: any}}
- name: named
  list: {elementRelationship: associative, keys: [name], elementType: {namedType: any}}
- name: any
  scalar: untyped
  list: {elementRelationship: atomic, elementType: {namedType: any}}
  map: {elementRelationship: separable, elementType: {namedType: any}}
`

// newClientset returns a registry in this process that merges as the real one does.
func newClientset(t testing.TB, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	parser, err := typed.NewParser(statusSchema)
	if err != nil {
		t.Fatal(err)
	}
	tracker := kubetesting.NewFieldManagedObjectTracker(scheme.Scheme, serializer.NewCodecFactory(scheme.Scheme).UniversalDecoder(),
		managedfields.NewSchemeTypeConverter(scheme.Scheme, parser))
	for _, object := range objects {
		if err := tracker.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	client := &fake.Clientset{}
	client.AddReactor("*", "*", kubetesting.ObjectReaction(tracker))
	client.AddWatchReactor("*", func(action kubetesting.Action) (bool, watch.Interface, error) {
		w, err := tracker.Watch(action.GetResource(), action.GetNamespace())
		return err == nil, w, err
	})
	return client
}
