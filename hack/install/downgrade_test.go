package main

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

// definition returns a definition of an API with the properties of spec in YAML.
func definition(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "clusterregistries.operator.clusterregistry.io", nil)
	text := "{versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: " + spec + "}}}}}]}"
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	crd.Object["spec"] = content
	return crd
}

// TestDowngrade installs definitions over another one.
func TestDowngrade(t *testing.T) {
	const present = "{version: {type: string, enum: [v0.1.0, v0.2.0]}, etcd: {type: object, properties: {replicas: {type: integer}}}, users: {type: array, items: {type: object, properties: {name: {type: string}}}}}"
	for _, test := range []struct {
		reason, next string
		lacks        []string
	}{
		{"the same again", present, nil},
		{"a newer one", "{version: {type: string, enum: [v0.1.0, v0.2.0, v0.3.0]}, etcd: {type: object, properties: {replicas: {type: integer}}}, users: {type: array, items: {type: object, properties: {name: {type: string}}}}, more: {type: string}}", nil},
		{"one that knows fewer versions", "{version: {type: string, enum: [v0.1.0]}, etcd: {type: object, properties: {replicas: {type: integer}}}, users: {type: array, items: {type: object, properties: {name: {type: string}}}}}", []string{"v1alpha1.spec.version = v0.2.0"}},
		{"one without fields, of which the outermost is named", "{version: {type: string, enum: [v0.1.0, v0.2.0]}, users: {type: array, items: {type: object}}}", []string{"v1alpha1.spec.etcd", "v1alpha1.spec.users[].name"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			host, applied := newHost(t, interceptor.Funcs{}, definition(t, present))
			next := []*unstructured.Unstructured{definition(t, test.next)}
			err := noDowngrade(t.Context(), host, next)
			if (err != nil) != (len(test.lacks) > 0) || err != nil && (!strings.Contains(err.Error(), strings.Join(test.lacks, ", ")+":") || !strings.Contains(err.Error(), "make install DOWNGRADE=1")) {
				t.Errorf("%v", err)
			}
			if got := missing(definedIn(definition(t, present)), definedIn(definition(t, test.next))); !slices.Equal(got, test.lacks) {
				t.Errorf("it lacks %v, want %v", got, test.lacks)
			}
			if len(*applied) > 0 {
				t.Errorf("something was applied: %v", *applied)
			}
		})
	}
	host, _ := newHost(t, interceptor.Funcs{})
	if err := noDowngrade(t.Context(), host, installation()); err != nil {
		t.Errorf("nothing is installed: %v", err)
	}
}

// TestUpRefusesADowngrade expects that nothing is applied before the definition is
// looked at, unless a person says that it is meant.
func TestUpRefusesADowngrade(t *testing.T) {
	objects := installation()
	older := definition(t, "{version: {type: string, enum: [v0.1.0]}}")
	older.Object["status"] = objects[1].Object["status"]
	objects[1] = older
	host, log := newHost(t, interceptor.Funcs{}, definition(t, "{version: {type: string, enum: [v0.1.0, v0.2.0]}}"))
	if err := up(t.Context(), host, t.Output(), objects, false); err == nil || len(*log) > 0 {
		t.Errorf("%v; applied: %v", err, *log)
	}
	if err := up(t.Context(), host, t.Output(), objects, true); err != nil || !slices.Contains(*log, "apply CustomResourceDefinition") {
		t.Errorf("it is meant: %v; applied: %v", err, *log)
	}
}
