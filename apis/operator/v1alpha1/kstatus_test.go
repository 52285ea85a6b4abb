package v1alpha1

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// TestNewObjectsAreWaitedFor reads objects as a host cluster shows them that the operator has not
// seen yet. The library by which GitOps tools wait takes what has no status for complete.
func TestNewObjectsAreWaitedFor(t *testing.T) {
	for _, file := range []string{crdFile, backupCRDFile, selectionCRDFile} {
		root := rootSchema(t, file)
		structural, err := schema.NewStructural(&root)
		if err != nil {
			t.Fatal(err)
		}
		object := map[string]any{"apiVersion": SchemeGroupVersion.String(), "kind": "Any", "metadata": map[string]any{"name": "a", "generation": int64(1)}, "spec": map[string]any{}}
		defaulting.Default(object, structural)
		result, err := status.Compute(&unstructured.Unstructured{Object: object})
		if err != nil {
			t.Fatal(err)
		}
		if result.Status != status.InProgressStatus {
			t.Errorf("%s: a new object is %s", file, result.Status)
		}
	}
}
