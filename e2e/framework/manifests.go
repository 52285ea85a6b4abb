package framework

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Apply fills the template at path with values and applies the objects in it,
// the namespaced ones in the test's namespace unless they name another. What
// the removal of the test's namespace doesn't remove is removed when the test
// ends, the last first.
func (e *Env) Apply(path string, values any) {
	e.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		e.t.Fatal(err)
	}
	parsed, err := template.New(path).Option("missingkey=error").Parse(string(content))
	if err != nil {
		e.t.Fatal(err)
	}
	var manifests bytes.Buffer
	if err := parsed.Execute(&manifests, values); err != nil {
		e.t.Fatal(err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(&manifests, 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			e.t.Fatalf("%s: %v", path, err)
		}
		if len(object.Object) > 0 {
			e.applyObject(object)
		}
	}
}

func (e *Env) applyObject(object *unstructured.Unstructured) {
	e.t.Helper()
	mapping, err := e.Client.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		e.t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	if mapping.Scope.Name() == "namespace" && object.GetNamespace() == "" {
		object.SetNamespace(e.Namespace)
	}
	if err := e.Client.Apply(e.t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("e2e"), client.ForceOwnership); err != nil {
		e.t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	if object.GetNamespace() != e.Namespace {
		e.t.Cleanup(func() {
			if err := client.IgnoreNotFound(e.Client.Delete(context.Background(), object)); err != nil {
				e.t.Errorf("remove %s %s: %v", object.GetKind(), object.GetName(), err)
			}
		})
	}
}
