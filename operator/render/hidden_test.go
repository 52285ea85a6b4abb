package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestHiddenExports expects that a registry that hides clusters publishes only what an export
// shows on purpose: neither what it would publish, nor the right to do so, nor what it has
// published stays otherwise.
func TestHiddenExports(t *testing.T) {
	const set = "clusterregistry.k8s.io/clusterset"
	for _, test := range []struct {
		reason, selector string
		shown            bool
	}{
		{"no selector", "{}", false},
		{"another label", "{matchLabels: {env: prod}}", false},
		{"one that looks alike", "{matchLabels: {example.com/clusterset: blue}}", false},
		{"a ClusterSet", "{matchLabels: {" + set + ": blue}}", true},
		{"ClusterSets", "{matchExpressions: [{key: " + set + ", operator: In, values: [blue, green]}]}", true},
		{"any", "{matchExpressions: [{key: " + set + ", operator: Exists}]}", true},
		{"all but one", "{matchExpressions: [{key: " + set + ", operator: NotIn, values: [blue]}]}", false},
		{"those of none", "{matchExpressions: [{key: " + set + ", operator: DoesNotExist}]}", false},
	} {
		for visibility, hidden := range map[string]bool{"All": false, "ClusterSets": true, "not approved": true} {
			spec := "ClusterSets"
			if visibility != "ClusterSets" {
				spec = "All"
			}
			in := input(t, merged(t, `{server: {authorization: {visibility: `+spec+`}}, controllers: {exports: [{format: ClusterProfile, namespace: a, selector: `+test.selector+`},
				{format: ClusterProfile, namespace: b, selector: {matchLabels: {`+set+`: green}}}]}}`))
			in.Reached = []string{"a", "b"}
			if visibility == "not approved" {
				in.Registry.Status.Visibility = &operatorv1alpha1.VisibilityStatus{ID: "x"}
			}
			shown := test.shown || !hidden
			var bound []string
			for _, object := range rendered(t, in).Stages[StageController] {
				if object.GetName() == contract.ExportsBinding(in.Registry.Namespace, in.Registry.Name, "cluster-profiles") {
					bound = append(bound, object.GetNamespace())
				}
			}
			file := controllerFiles(Asked(in.Registry))[exportsKey]
			if slices.Contains(bound, "a") != shown || strings.Contains(file, `"namespace":"a"`) != shown {
				t.Errorf("%s, %s: bound in %q, and published is %s", test.reason, visibility, bound, file)
			}
			if !slices.Contains(bound, "b") || !strings.Contains(file, `"namespace":"b"`) {
				t.Errorf("%s, %s: another export goes with it: bound in %q, and published is %s", test.reason, visibility, bound, file)
			}
			if err := Unshown(in.Registry); (err == nil) != shown || err != nil && !strings.Contains(err.Error(), "namespace a would see all clusters that spec.controllers.exports[0] selects") {
				t.Errorf("%s, %s: %v", test.reason, visibility, err)
			}
		}
	}
}

// TestHiddenChosenExports expects that a registry that hides clusters publishes what a ClusterSelection
// chooses where the selections see those of some ClusterSets alone.
func TestHiddenChosenExports(t *testing.T) {
	for visibility, hidden := range map[string]bool{"All": false, "ClusterSets": true} {
		for sets, limited := range map[string]bool{"[]": false, "[gold]": true, "[gold], selector: {matchLabels: {tier: gold star}}": false} {
			in := input(t, merged(t, `{server: {authorization: {visibility: `+visibility+`}}, controllers: {exports: [{format: ClusterProfile, namespace: a, selection: gold}, {format: Kubeconfig, namespace: b, selection: gold}],
				clusterSelections: [{namespace: a, clusterSets: `+sets+`}, {namespace: b, clusterSets: [green]}]}}`))
			shown, says := limited || !hidden, "set spec.controllers.clusterSelections[0].clusterSets"
			if strings.Contains(sets, "selector") {
				says = "give namespace a an entry with clusterSets and a valid selector"
			}
			file := controllerFiles(Asked(in.Registry))[exportsKey]
			if strings.Contains(file, `"namespace":"a"`) != shown || !strings.Contains(file, `"namespace":"b"`) {
				t.Errorf("%s, of %s: published is %s", visibility, sets, file)
			}
			if err := Unshown(in.Registry); (err == nil) != shown || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s, of %s: %v", visibility, sets, err)
			}
		}
	}
}

// TestHiddenSelections expects that the selections of a registry that hides clusters see those of
// some ClusterSets, or none.
func TestHiddenSelections(t *testing.T) {
	for visibility, hidden := range map[string]bool{"All": false, "ClusterSets": true, "not approved": true} {
		for sets, limited := range map[string]bool{"[]": false, "[gold]": true} {
			in := input(t, merged(t, `{controllers: {clusterSelections: [{namespace: a, clusterSets: `+sets+`}, {namespace: b, clusterSets: [green]}]}}`))
			switch visibility {
			case "ClusterSets":
				in.Registry.Spec.Server.Authorization = &operatorv1alpha1.Authorization{Visibility: operatorv1alpha1.VisibilityClusterSets}
			case "not approved":
				in.Registry.Status.Visibility = &operatorv1alpha1.VisibilityStatus{ID: "x"}
			}
			shown := limited || !hidden
			var namespaces []string
			for _, of := range Asked(in.Registry).ClusterSelections {
				namespaces = append(namespaces, string(of.Namespace))
			}
			if slices.Contains(namespaces, "a") != shown || !slices.Contains(namespaces, "b") {
				t.Errorf("%s, of %s: they are of %q", visibility, sets, namespaces)
			}
			if err := Unshown(in.Registry); (err == nil) != shown || err != nil && !strings.Contains(err.Error(), "set spec.controllers.clusterSelections[0].clusterSets") {
				t.Errorf("%s, of %s: %v", visibility, sets, err)
			}
		}
	}
}

// TestFeedOf expects the feed of a registry to hide what the registry hides, or may have hidden, to show
// a certificate of the CA that clients of the servers trust, and to be there in mode Aggregated alone.
func TestFeedOf(t *testing.T) {
	for _, test := range []struct {
		reason, spec string
		unapproved   bool
		shows        string
		issuer       string
	}{
		{"nothing is hidden", `mode: Aggregated`, false, "All", "fleet-serving-ca"},
		{"clusters are hidden", `mode: Aggregated, server: {authorization: {visibility: ClusterSets}}`, false, "ClusterSets", "fleet-serving-ca"},
		{"no one has approved that they are shown", `mode: Aggregated`, true, "ClusterSets", "fleet-serving-ca"},
		{"another issuer", `mode: Aggregated, tls: {issuerRef: {name: corporate}, caBundle: Q0E=}`, false, "All", "corporate"},
		{"past the schema", `mode: Independent`, false, "", ""},
	} {
		in := input(t, merged(t, `{`+test.spec+`, controllers: {registerHost: {name: host}, feed: {labels: [tier]}}}`))
		if test.unapproved {
			in.Registry.Status.Visibility = &operatorv1alpha1.VisibilityStatus{ID: "x"}
		}
		on, found := test.shows != "", map[string]bool{}
		for _, object := range rendered(t, in).Stages[StageController] {
			if object.GetName() != "fleet-controller" {
				continue
			}
			found[object.GetKind()] = true
			switch object.GetKind() {
			case "Certificate":
				usages, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "usages")
				issuer, _, _ := unstructured.NestedString(object.Object, "spec", "issuerRef", "name")
				if on && (issuer != test.issuer || !slices.Contains(usages, "server auth")) {
					t.Errorf("%s: it is %s, of %s", test.reason, usages, issuer)
				}
			case "Deployment":
				text := fmt.Sprint(object.Object)
				if strings.Contains(text, "feed") != on || on && (!strings.Contains(text, "--feed-file=/config/feed.json") || !strings.Contains(text, "--feed-visibility="+test.shows)) {
					t.Errorf("%s: %s", test.reason, text)
				}
			case "ConfigMap":
				content, _, _ := unstructured.NestedString(object.Object, "data", "feed.json")
				if (content == "{\"labels\":[\"tier\"]}\n") != on {
					t.Errorf("%s: it reads %q", test.reason, content)
				}
			}
		}
		if found["Service"] != on || !found["Deployment"] {
			t.Errorf("%s: there are %v", test.reason, found)
		}
	}
}
