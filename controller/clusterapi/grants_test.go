package clusterapi

import (
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"
)

// TestGrants refuses what would let a Cluster choose a program, or credentials go anywhere.
func TestGrants(t *testing.T) {
	template := func(fields string) string { return `{"accessTemplates": [{` + fields + `}]}` }
	way := func(fields string) string {
		return template(`"namespaces": ["a"], "hosts": ["*.example.com"], "access": [{"name": "a", ` + fields + `}]`)
	}
	exec := func(fields string) string { return way(`"exec": {` + fields + `}`) }
	at := func(host string) string {
		return template(`"namespaces": ["a"], "hosts": ["` + host + `"], "access": [{"name": "a", "provider": {}}]`)
	}
	for text, want := range map[string]string{
		`{"credentials": "x"}`: "unknown field",
		template(`"hosts": ["*.example.com"], "access": [{"name": "a", "provider": {}}]`):                           "it needs namespaces and access",
		template(`"namespaces": ["a"], "access": [{"name": "a", "provider": {}}]`):                                  "it needs hosts",
		template(`"namespaces": ["a"], "hosts": ["*.example.com"]`):                                                 "it needs namespaces and access",
		template(`"namespaces": ["a"], "hosts": ["*.example.com"], "access": [{"name": "a"}]`):                      "exactly one of exec and provider",
		way(`"objectRef": {"kind": "Secret"}`):                                                                      "exactly one of exec and provider",
		template(`"namespaces": ["a"], "hosts": ["*.example.com"], "access": [{"name": "{name}", "provider": {}}]`): "chooses neither",
		way(`"provider": {"type": "{namespace}"}`):                                                                  "chooses neither",
		exec(`"command": "{name}"`):                                                                                 "chooses neither",
		exec(`"command": "a", "args": ["{label:zone}"]`):                                                            "{label:zone}",
		exec(`"command": "a", "args": ["{name"]`):                                                                   "a brace alone",
		exec(`"command": "a", "args": ["{name}"]`):                                                                  "name a cluster of another namespace",
		exec(`"command": "a", "args": ["{namespace}-{name}"]`):                                                      "name a cluster of another namespace",
		exec(`"command": "a", "env": [{"name": "A", "value": "{controlPlane}"}]`):                                   "name a cluster of another namespace",
		way(`"provider": {"config": {"cluster": "{namespace}.{controlPlane}"}}`):                                    "name a cluster of another namespace",
		exec(`"command": "aws", "args": ["eks", "get-token", "--cluster-name={namespace}_{controlPlane}", "$(X)"]`): "",
		at("*"): "hosts has", at("*.com"): "hosts has", at("0.0.0.0/0"): "hosts has", at("10.8.0.1"): "hosts has", at("10.8.0.1/16"): "hosts has", at("Api.example.com"): "hosts has", at("::ffff:10.0.0.0/104"): "hosts has",
		at("10.8.0.0/16"): "", at("fd00:8::/32"): "", at("api.example.com"): "",
		`{"clusterSets": [{"namespace": "a"}]}`:                                                           "it needs a namespace and a clusterSet",
		`{"clusterSets": [{"namespace": "a", "clusterSet": "x"}, {"namespace": "a", "clusterSet": "y"}]}`: "has a ClusterSet already",
	} {
		_, err := ParseGrants([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestRenderedGrants reads what the operator makes of each field.
func TestRenderedGrants(t *testing.T) {
	content, err := os.ReadFile("../../operator/render/testdata/newest/every-field.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(content), "\n---\n") {
		var object struct {
			Kind string
			Data map[string]string
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		text, has := object.Data["cluster-api-grants.json"]
		if object.Kind != "ConfigMap" || !has {
			continue
		}
		grants, err := ParseGrants([]byte(text))
		if err != nil || len(grants.AccessTemplates) == 0 || len(grants.AccessTemplates[0].Access) != 2 || len(grants.ClusterSets) == 0 {
			t.Errorf("%s: %+v, %v", text, grants, err)
		}
		return
	}
	t.Error("no ConfigMap has grants")
}

// TestNoClusterPassesForAnother makes the texts of many templates for Clusters with names that are
// easily mixed up: none is ever the same for two namespaces.
func TestNoClusterPassesForAnother(t *testing.T) {
	var sources []*clusterv1.Cluster
	names := []string{"a", "b", "a-b", "b-a", "a.b", "b.a", "a-b.a"}
	for _, namespace := range []string{"a", "b", "a-b", "b-a"} {
		for _, name := range names {
			for _, reference := range names {
				c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
				c.Spec.ControlPlaneRef.Name = reference
				sources = append(sources, c)
			}
		}
	}
	accepted := 0
	for _, text := range mixtures() {
		if wellFormed(text) != nil || !choosable.MatchString(text) {
			continue
		}
		accepted++
		of := map[string]string{}
		for _, c := range sources {
			made, err := expand(text, c)
			if err != nil {
				t.Fatal(err)
			}
			if other, has := of[made]; has && other != c.Namespace {
				t.Fatalf("%q is %q for a Cluster in %s and for one in %s", text, made, other, c.Namespace)
			}
			of[made] = c.Namespace
		}
	}
	if accepted < 500 { // else nothing was looked at
		t.Errorf("%d templates were accepted", accepted)
	}
}

// mixtures are texts of up to three placeholders, with all kinds of characters between them.
func mixtures() []string {
	placeholders, between := []string{"{namespace}", "{name}", "{controlPlane}"}, []string{"", "-", ".", "_", "/", "b"}
	out, texts := slices.Clone(placeholders), placeholders
	for range 2 {
		var longer []string
		for _, text := range texts {
			for _, gap := range between {
				for _, next := range placeholders {
					longer = append(longer, text+gap+next)
				}
			}
		}
		out, texts = append(out, longer...), longer
	}
	for _, text := range slices.Clone(out) {
		out = append(out, "b"+text, text+"b", "--x="+text)
	}
	return out
}
