package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestCompare changes made-up schemas. Each row has what is found, and nothing else may be.
func TestCompare(t *testing.T) {
	for _, test := range []struct{ name, before, now, want string }{
		{"nothing", "{type: string, maxLength: 3}", "{type: string, maxLength: 3}", ""},
		{"texts", "{type: string, description: a}", "{type: string, description: b}", ""},
		{"a field is added", "{type: object}", "{type: object, properties: {a: {type: string}}}", ""},
		{"a field is gone", "{type: object, properties: {a: {type: string}}}", "{type: object}", "K v1, a: is gone"},
		{"a field is gone from what keeps all", "{type: object, properties: {a: {type: string}}}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", ""},
		{"unknown fields are dropped", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}", "K v1: no longer keeps fields"},
		{"another type", "{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: integer}}}", "K v1, a: was string and is integer"},
		{"another format", "{type: integer, format: int64}", "{type: integer, format: int32}", "K v1: was integer (int64) and is integer (int32)"},
		{"no null", "{type: string, nullable: true}", "{type: string}", "K v1: no longer takes null"},
		{"a value is added", "{type: string, enum: [a]}", "{type: string, enum: [a, b]}", ""},
		{"a value is gone", "{type: string, enum: [a, b]}", "{type: string, enum: [a]}", `K v1: no longer takes "b"`},
		{"values are listed", "{type: string}", "{type: string, enum: [a]}", `K v1: took any value and takes "a" only`},
		{"values are no longer listed", "{type: string, enum: [a]}", "{type: string}", ""},
		{"a wider limit", "{type: array, items: {type: string}, maxItems: 3}", "{type: array, items: {type: string}, maxItems: 4}", ""},
		{"a narrower limit", "{type: array, items: {type: string}, maxItems: 4}", "{type: array, items: {type: string}, maxItems: 3}", "K v1: maxItems was 4 and is 3"},
		{"a new limit", "{type: array, items: {type: string}}", "{type: array, items: {type: string, maxLength: 3}}", "K v1, []: maxLength was not set and is 3"},
		{"a higher minimum", "{type: object, additionalProperties: {type: integer, minimum: 1}}", "{type: object, additionalProperties: {type: integer, minimum: 2}}", "K v1, [*]: minimum was 1 and is 2"},
		{"no limit any more", "{type: integer, maximum: 3}", "{type: integer}", ""},
		{"the bound is excluded", "{type: integer, maximum: 3}", "{type: integer, maximum: 3, exclusiveMaximum: true}", "K v1: no longer takes its bound"},
		{"a pattern", "{type: string}", "{type: string, pattern: ^a$}", "K v1: has another pattern"},
		{"required", "{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string}}}", "K v1, a: is required now"},
		{"required, with a default", "{type: object, properties: {a: {type: string, default: x}}}", "{type: object, required: [a], properties: {a: {type: string, default: x}}}", ""},
		{"required in what is new", "{type: object}", "{type: object, properties: {a: {type: object, required: [b], properties: {b: {type: string}}}}}", ""},
		{"no longer required", "{type: object, required: [a], properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string}}}", ""},
		{"another default", "{type: string, default: a}", "{type: string, default: b}", `K v1: has the default "b", and had "a"`},
		{"no default", "{type: string, default: a}", "{type: string}", `K v1: has no default any more`},
		{"a default", "{type: string}", "{type: string, default: a}", `warning: K v1: has the default "a", and had none`},
		{"another way to merge", "{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: set}", `K v1: x-kubernetes-list-type was "atomic" and is "set"`},
		{"a rule", "{type: string}", "{type: string, x-kubernetes-validations: [{rule: self != 'a'}]}", "warning: K v1: has a new rule, self != 'a'"},
		{"a rule with another message", "{type: string, x-kubernetes-validations: [{rule: self != 'a', message: m}]}", "{type: string, x-kubernetes-validations: [{rule: self != 'a', message: n}]}", ""},
		{"a rule about a change", "{type: string}", "{type: string, x-kubernetes-validations: [{rule: self == oldSelf || self != 'a'}]}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, f := range compare(made(t, test.before), made(t, test.now)) {
				line := f.String()
				if f.warning {
					line = "warning: " + line
				}
				got = append(got, line)
			}
			if text := strings.Join(got, "\n"); len(got) > 1 || !strings.HasPrefix(text, test.want) || test.want == "" && text != "" {
				t.Errorf("got %q; want what begins with %q", text, test.want)
			}
		})
	}
}

// made returns one kind with a schema.
func made(t *testing.T, schema string) map[string]resource {
	var s apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict([]byte(schema), &s); err != nil {
		t.Fatal(err)
	}
	return map[string]resource{"K v1": {Scope: "Cluster", Plural: "ks.example", Status: true, Fields: []string{".spec.a"}, Schema: plain(&s)}}
}

// TestCompareResources changes what is around the schemas.
func TestCompareResources(t *testing.T) {
	for want, change := range map[string]func(map[string]resource, resource){
		"K v1: is no longer served":             func(all map[string]resource, _ resource) { delete(all, "K v1") },
		"":                                      func(all map[string]resource, r resource) { all["L v1"] = r },
		"K v1: was ks.example, scope Cluster":   func(all map[string]resource, r resource) { r.Scope = "Namespaced"; all["K v1"] = r },
		"K v1: has no subresource status":       func(all map[string]resource, r resource) { r.Status = false; all["K v1"] = r },
		"K v1, spec.a: can no longer be select": func(all map[string]resource, r resource) { r.Fields = nil; all["K v1"] = r },
	} {
		before, now := made(t, "{type: object}"), made(t, "{type: object}")
		change(now, now["K v1"])
		findings := compare(before, now)
		switch {
		case want == "" && len(findings) == 0:
		case want == "" || len(findings) != 1 || !strings.HasPrefix(findings[0].String(), want):
			t.Errorf("got %v; want what begins with %q", findings, want)
		}
	}
}

// TestReport prints warnings and fails for the rest, with what to do.
func TestReport(t *testing.T) {
	var out bytes.Buffer
	if err := report(&out, []finding{{kind: "K v1", path: "spec.a", what: "has a new rule", warning: true}}); err != nil || out.String() != "warning: K v1, spec.a: has a new rule\n" {
		t.Errorf("got %v and %q; want a warning alone", err, &out)
	}
	err := report(&out, []finding{{kind: "K v1", path: "spec.a", what: "is gone"}})
	if err == nil || !strings.Contains(err.Error(), "K v1, spec.a: is gone") || !strings.Contains(err.Error(), "make update-schemas") {
		t.Errorf("got %v; want what, where, and what to do", err)
	}
}

// TestServed loads the schemas of this checkout, gives all fields another type, and has each of
// these changes found: no part of a schema is passed over.
func TestServed(t *testing.T) {
	now, err := served("../..")
	if err != nil {
		t.Fatal(err)
	}
	kinds := slices.Sorted(maps.Keys(now))
	for _, want := range []string{"Cluster v1beta1", "ClusterRegistry v1alpha1", "ClusterRegistryBackup v1alpha1", "ClusterSet v1beta1"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("%s was not found among %v", want, kinds)
		}
	}
	// Two loads, so that nothing is shared and all of it compares.
	file := filepath.Join(t.TempDir(), "baseline.json")
	if err := write(file, now); err != nil {
		t.Fatal(err)
	}
	before, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	if found := compare(before, now); len(found) > 0 {
		t.Errorf("what was written compares with itself as %v", found)
	}
	for _, kind := range kinds {
		leaves := respell(now[kind].Schema)
		found := compare(map[string]resource{kind: before[kind]}, map[string]resource{kind: now[kind]})
		if len(found) != leaves || leaves < 7 {
			t.Errorf("%s: of %d fields with another type, %d were found", kind, leaves, len(found))
		}
	}
}

// respell gives everything in a schema that has nothing below another type, and returns how many
// there are.
func respell(s *apiextensionsv1.JSONSchemaProps) int {
	if items := s.Items; items != nil && items.Schema != nil {
		return respell(items.Schema)
	}
	if values := s.AdditionalProperties; values != nil && values.Schema != nil {
		return respell(values.Schema)
	}
	if len(s.Properties) == 0 {
		s.Type += "?"
		return 1
	}
	leaves := 0
	for name, child := range s.Properties {
		leaves += respell(&child)
		s.Properties[name] = child
	}
	return leaves
}

// TestModelsResolve puts models in place of references, and leaves those of Kubernetes.
func TestModelsResolve(t *testing.T) {
	out := map[string]resource{}
	err := models(out, []byte(`{
		"g.v1.K": {"type": "object", "properties": {"metadata": {"$ref": "#/definitions/meta"}, "spec": {"$ref": "#/definitions/g.v1.Spec"}}},
		"g.v1.KList": {"type": "object", "properties": {"metadata": {"$ref": "#/definitions/meta"}}},
		"g.v1.Spec": {"type": "object", "properties": {"a": {"type": "string"}}}}`), "g.", "v1")
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"K v1":{"schema":{"type":"object","properties":{"metadata":{"$ref":"#/definitions/meta"},"spec":{"type":"object","properties":{"a":{"type":"string"}}}}}}}`
	if string(content) != want {
		t.Errorf("got %s; want %s", content, want)
	}
}
