package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/operator/version"
)

// minors returns a table of minor releases, each with a patch release.
func minors(n int) []version.Release {
	var out []version.Release
	for i := 1; i <= n; i++ {
		var from []string
		if i > 1 {
			from = []string{fmt.Sprintf("v0.%d.0", i-1), fmt.Sprintf("v0.%d.1", i-1)}
		}
		out = append(out, version.Release{Version: fmt.Sprintf("v0.%d.0", i), UpgradesFrom: from},
			version.Release{Version: fmt.Sprintf("v0.%d.1", i), UpgradesFrom: append(from, fmt.Sprintf("v0.%d.0", i))})
	}
	return out
}

// withRuleOf returns the definition in the repository with the rule of a table in
// place of its own, as a host takes it.
func withRuleOf(t *testing.T, releases []version.Release) *apiextensions.CustomResourceDefinition {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", crdFile))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &crd); err != nil {
		t.Fatal(err)
	}
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	generated := func(rule apiextensionsv1.ValidationRule) bool { return rule.FieldPath == ".spec.version" }
	written := len(root.XValidations)
	root.XValidations = slices.DeleteFunc(root.XValidations, generated)
	if len(root.XValidations) != written-1 {
		t.Fatalf("of %d rules, %d are generated, want 1, of the version", written, written-len(root.XValidations))
	}
	spec := root.Properties["spec"]
	field := spec.Properties["version"]
	field.Enum = nil
	for _, r := range releases {
		field.Enum = append(field.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + r.Version + `"`)})
	}
	spec.Properties["version"] = field
	if content, err = yaml.Marshal(crd); err != nil {
		t.Fatal(err)
	}
	if content, err = withRule(content, releases); err != nil {
		t.Fatal(err)
	}
	crd = apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, &crd); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	out := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFits expects that client-side apply can store the definition as it is, and that one is
// refused before it can't.
func TestFits(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", crdFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := fits(content); err != nil {
		t.Error(err)
	}
	long := "description: " + strings.Repeat("x", maxApplied) + "\n"
	if err := fits([]byte(long)); err == nil || !strings.Contains(err.Error(), "client-side apply") {
		t.Errorf("a definition that is too large: %v", err)
	}
}

// refusals returns how the rules of a definition refuse a change of an object, both
// in YAML, in one text.
func refusals(t *testing.T, crd *apiextensions.CustomResourceDefinition) func(from, to string) string {
	t.Helper()
	schema := crd.Spec.Validation
	if schema == nil {
		schema = crd.Spec.Versions[0].Schema
	}
	structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	validator := cel.NewValidator(structural, true, 1000000)
	parse := func(text string) map[string]any {
		if text == "" {
			return nil // it is created
		}
		content, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			t.Fatal(err)
		}
		return object.Object
	}
	return func(from, to string) string {
		var old any // nil in a creation, and no empty map
		if from := parse(from); from != nil {
			old = from
		}
		errs, _ := validator.Validate(t.Context(), nil, structural, parse(to), old, math.MaxInt64)
		var out []string
		for _, err := range errs {
			out = append(out, err.Field+": "+err.Detail)
		}
		return strings.Join(out, "\n")
	}
}

func registry(wanted, status string) string {
	return fmt.Sprintf("{apiVersion: operator.clusterregistry.io/v1alpha1, kind: ClusterRegistry, metadata: {name: fleet, namespace: team}, spec: {version: %s, mode: Independent, etcd: {replicas: 3}}, status: %s}", wanted, status)
}

// TestRule asks the rule of some tables for each change that there can be. It decides
// as the operator does, and in its words, of which it leaves out the releases on the
// way after the first.
func TestRule(t *testing.T) {
	recorded, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	further := regexp.MustCompile(` and v[^ ;]+`)
	for reason, releases := range map[string][]version.Release{
		"the releases that there are": recorded,
		"many releases":               minors(12),
		"one release":                 {{Version: "v0.1.0"}},
		"a patch of an old release, which leads to a patch of the next": {{Version: "v0.1.0"}, {Version: "v0.1.1", UpgradesFrom: []string{"v0.1.0"}},
			{Version: "v0.2.0", UpgradesFrom: []string{"v0.1.0"}}, {Version: "v0.2.1", UpgradesFrom: []string{"v0.1.1", "v0.2.0"}}},
	} {
		crd := withRuleOf(t, releases)
		if errs := validation.ValidateCustomResourceDefinition(t.Context(), crd); len(errs) > 0 {
			t.Fatalf("%s: a host refuses the definition: %v", reason, errs.ToAggregate())
		}
		refused := refusals(t, crd)
		for _, running := range releases {
			for _, wanted := range releases {
				want := ""
				if err := version.CheckUpgrade(releases, running.Version, wanted.Version); err != nil {
					want = "spec.version: " + further.ReplaceAllString(err.Error(), "")
				}
				if got := refused(registry(running.Version, "{version: "+running.Version+"}"), registry(wanted.Version, "{version: "+running.Version+"}")); got != want {
					t.Errorf("%s: %s to %s: %q, want %q", reason, running.Version, wanted.Version, got, want)
				}
			}
		}
	}
}

// TestRuleIsAboutWhatRuns looks at changes in which something else than a release of
// the table runs.
func TestRuleIsAboutWhatRuns(t *testing.T) {
	refused := refusals(t, withRuleOf(t, minors(4)))
	for _, test := range []struct{ reason, old, status, wanted, says string }{
		{"nothing runs yet", "v0.1.0", "{}", "v0.4.0", ""},
		{"a release of a newer operator runs", "v0.2.0", "{version: v0.9.0}", "v0.1.0", ""},
		{"another was wanted before, and does not run", "v0.2.0", "{version: v0.1.0}", "v0.3.0", "v0.1.0 -> v0.3.0 skips v0.2.1; set spec.version to v0.2.1 first"},
		{"what was wanted before stays, wrong as it is", "v0.4.0", "{version: v0.1.0}", "v0.4.0", ""},
		{"the old end of an upgrade whose servers serve", "v0.2.0", "{version: v0.2.0, operation: {type: Upgrade, from: v0.1.0, to: v0.2.0}}", "v0.1.0", ""},
		{"its new end", "v0.1.0", "{version: v0.1.0, operation: {type: Upgrade, from: v0.1.0, to: v0.2.0}}", "v0.2.0", ""},
		{"an operation that is no upgrade", "v0.2.0", "{version: v0.2.0, operation: {type: Snapshot}}", "v0.1.0", "is a downgrade"},
		{"neither end", "v0.2.0", "{version: v0.2.0, operation: {type: Upgrade, from: v0.2.0, to: v0.3.0}}", "v0.1.0", "is a downgrade"},
	} {
		got := refused(registry(test.old, test.status), registry(test.wanted, test.status))
		if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
			t.Errorf("%s: %q", test.reason, got)
		}
	}
}

// TestRuleGrowsWithReleases compares the rules of two tables.
func TestRuleGrowsWithReleases(t *testing.T) {
	size := func(n int) int {
		r, err := rule(minors(n))
		if err != nil {
			t.Fatal(err)
		}
		return len(r.Rule) + len(r.MessageExpression)
	}
	if few, many := size(12), size(24); many > 5*few/2 {
		t.Errorf("the rule has %d characters with 24 releases and %d with 48", few, many)
	}
}

// TestRuleLeadsSomewhere refuses a table of which the rule would name a wrong step.
func TestRuleLeadsSomewhere(t *testing.T) {
	_, err := rule([]version.Release{{Version: "v0.1.0"}, {Version: "v0.2.0", UpgradesFrom: []string{"v0.1.0"}}, {Version: "v0.2.1", UpgradesFrom: []string{"v0.1.0"}}, {Version: "v0.3.0", UpgradesFrom: []string{"v0.2.0"}}})
	if err == nil || !strings.Contains(err.Error(), "on the way from v0.1.0 to v0.3.0, v0.2.1 would be named first, and leads nowhere") {
		t.Errorf("%v", err)
	}
}
