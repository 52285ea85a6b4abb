package apply

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// once reports whether an object can't be changed once it is made.
func once(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return kind.Group == batchv1.GroupName && kind.Kind == "Job"
}

// marked returns what is applied of an object: of one that can't be changed, also the digest of
// what is asked for.
func marked(wanted *unstructured.Unstructured, sum string) *unstructured.Unstructured {
	if !once(wanted) {
		return wanted
	}
	out := wanted.DeepCopy()
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[operatorv1alpha1.AnnotationApplied] = sum
	out.SetAnnotations(annotations)
	return out
}

// asked reports whether an object that can't be changed was made by asking for just what is wanted.
// A webhook of the platform may have made something else of that, and would of the next one as
// well: to apply it again, after a restart, would be refused as a change.
func asked(wanted *unstructured.Unstructured, sum string, current client.Object) bool {
	if !once(wanted) || Owner(current) != Owner(wanted) || current.GetAnnotations()[operatorv1alpha1.AnnotationApplied] != sum {
		return false
	}
	for name, value := range wanted.GetAnnotations() { // which say of which task it is
		if current.GetAnnotations()[name] != value {
			return false
		}
	}
	return true
}
