package apply

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestAsked goes by what was asked for where an object can't be changed, and by nothing else: one
// that has lost the labels by which it is found is applied.
func TestAsked(t *testing.T) {
	object := func(kind string) *unstructured.Unstructured {
		out := binding("fleet")
		out.SetGroupVersionKind(schema.FromAPIVersionAndKind("batch/v1", kind))
		out.SetAnnotations(map[string]string{"task": "one"})
		return out
	}
	for _, test := range []struct {
		reason, kind string
		change       func(now *unstructured.Unstructured)
		want         bool
	}{
		{"as it was made", "Job", func(*unstructured.Unstructured) {}, true},
		{"changed by others", "Job", func(now *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(now.Object, "mirror.example/helper", "spec", "template", "image")
		}, true},
		{"asked for with something else", "Job", func(now *unstructured.Unstructured) {
			now.SetAnnotations(map[string]string{operatorv1alpha1.AnnotationApplied: digest("another")})
		}, false},
		{"not known", "Job", func(now *unstructured.Unstructured) { now.SetAnnotations(nil) }, false},
		{"of no task any more", "Job", func(now *unstructured.Unstructured) {
			now.SetAnnotations(map[string]string{operatorv1alpha1.AnnotationApplied: now.GetAnnotations()[operatorv1alpha1.AnnotationApplied]})
		}, false},
		{"without its labels", "Job", func(now *unstructured.Unstructured) { now.SetLabels(nil) }, false},
		{"of a kind that can be changed", "CronJob", func(*unstructured.Unstructured) {}, false},
	} {
		wanted := object(test.kind)
		sum := digest(wanted.Object)
		now := marked(wanted, sum)
		if once(wanted) == maps.Equal(now.GetAnnotations(), wanted.GetAnnotations()) || len(wanted.GetAnnotations()) != 1 {
			t.Errorf("%s: it is applied with %v, and wanted with %v", test.reason, now.GetAnnotations(), wanted.GetAnnotations())
		}
		now = now.DeepCopy()
		if test.change(now); asked(wanted, sum, now) != test.want {
			t.Errorf("%s: %+v", test.reason, now.GetAnnotations())
		}
	}
}
