package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// typed returns an object in the Go type of its kind, in which the cache holds it.
func (a *Applier) typed(object *unstructured.Unstructured) (client.Object, error) {
	empty, err := a.client.Scheme().New(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, empty); err != nil {
		return nil, err
	}
	return empty.(client.Object), nil
}

// content returns a digest of what someone decided about an object: all but its
// status, and what the host counts.
func content(object client.Object) string {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "" // never equal to what was applied: it is applied again
	}
	delete(tree, "status")
	for _, field := range []string{"resourceVersion", "generation", "managedFields", "creationTimestamp"} {
		unstructured.RemoveNestedField(tree, "metadata", field)
	}
	untyped(tree)
	claims, _, _ := unstructured.NestedSlice(tree, "spec", "volumeClaimTemplates")
	for _, claim := range claims {
		untyped(claim.(map[string]any))
	}
	if len(claims) > 0 {
		_ = unstructured.SetNestedSlice(tree, claims, "spec", "volumeClaimTemplates")
	}
	return digest(tree)
}

// untyped drops the type of an object, which the host's JSON has and the cache,
// filled from protocol buffers, has not.
func untyped(object map[string]any) {
	delete(object, "apiVersion")
	delete(object, "kind")
}

func digest(tree any) string {
	text, err := json.Marshal(tree)
	if err != nil {
		panic(err) // a tree that came from JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
