package informers

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestMetadataOnly holds the kinds that apply.New is told of to those that are watched
// by their metadata alone: of one that is missing, content would be compared that the
// cache does not have.
func TestMetadataOnly(t *testing.T) {
	var watched []schema.GroupKind
	for _, object := range append(append(Owned(), Lease()), Issued()...) {
		if _, is := object.(*metav1.PartialObjectMetadata); is {
			watched = append(watched, object.GetObjectKind().GroupVersionKind().GroupKind())
		}
	}
	told := MetadataOnly()
	for _, kind := range watched {
		if !slices.Contains(told, kind) {
			t.Errorf("apply.New is not told that %s is held by its metadata alone", kind)
		}
	}
	if len(told) != len(watched) || len(watched) == 0 {
		t.Errorf("told: %v, watched: %v", told, watched)
	}
}
