package render

import (
	"slices"
	"strings"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestNeighborFlags expects what the controller is told of selectors and labels, and that a
// selector which the API can't check turns a function off, and nothing else.
func TestNeighborFlags(t *testing.T) {
	in := input(t, merged(t, `{controllers: {health: {}, clusterAPI: {namespaces: [a, b], selector: {matchLabels: {env: prod}, matchExpressions: [{key: tier, operator: NotIn, values: [x]}]}, labels: [region, example.com/*],
			clusterSets: [{namespace: a, clusterSet: gold}]},
		exports: [{format: ClusterProfile, namespace: a}, {format: ClusterProfile, namespace: b, selector: {matchLabels: {env: prod}}, labels: [region], providers: [secretreader, gke]}, {format: Kubeconfig, namespace: a, selection: gold}],
		clusterSelections: [{namespace: a}, {namespace: b, selector: {matchLabels: {env: prod}}, clusterSets: [payments, batch]}]}}`))
	arguments := func() []string {
		var out []string
		for _, function := range functions(in) {
			out = append(out, controllerArguments(*in.Registry.Spec.Controllers, function, in.Registry.Name)...)
		}
		return out
	}
	want := []string{
		"--health", "--health-period=60s",
		"--cluster-api", "--registry-name=fleet", "--cluster-api-namespaces=a,b", "--cluster-api-selector=env=prod,tier notin (x)", "--cluster-api-name-template={name}", "--cluster-api-labels=region,example.com/*",
		"--cluster-api-grants-file=/config/cluster-api-grants.json", "--cluster-api-deletion-policy=Retain", "--cluster-api-grace-period=3600s",
		"--registry-name=fleet", "--exports-file=/config/exports.json",
		"--registry-name=fleet", "--cluster-selections=a", "--cluster-selections=b:env=prod", "--cluster-selections-sets=b:payments,batch",
	}
	if got := arguments(); !slices.Equal(got, want) {
		t.Errorf("the flags are %q, want %q", got, want)
	}
	const exports = `[{"namespace":"a","format":"ClusterProfile"},{"namespace":"b","format":"ClusterProfile","selector":{"matchLabels":{"env":"prod"}},"labels":["region"],"providers":["secretreader","gke"]},{"namespace":"a","format":"Kubeconfig","selection":"gold"}]` + "\n"
	if got := controllerFiles(in.Registry.Spec.Controllers)["exports.json"]; got != exports {
		t.Errorf("the file of exports has %s", got)
	}
	in.Registry.Spec.Controllers.ClusterAPI.Selector.MatchExpressions[0].Values = nil
	if err := InvalidSelector(in.Registry.Spec.Controllers, contract.ClusterAPIFunction); err == nil || !strings.Contains(err.Error(), "spec.controllers.clusterAPI.selector is not valid") {
		t.Errorf("a selector without values: %v", err)
	}
	if got := functions(in); !slices.Equal(got, []string{contract.HealthFunction, contract.ExportsFunction, contract.ClusterSelectionsFunction}) {
		t.Errorf("with an invalid selector, these run: %v", got)
	}
	in.Registry.Spec.Controllers.Exports[1].Selector.MatchLabels["bad key"] = "x"
	if err := InvalidSelector(in.Registry.Spec.Controllers, contract.ExportsFunction); err == nil || !strings.Contains(err.Error(), "exports[1]") {
		t.Errorf("a key that is none: %v", err)
	}
	in.Registry.Spec.Controllers.ClusterSelections[1].Selector.MatchLabels["bad key"] = "x"
	if err := InvalidSelector(in.Registry.Spec.Controllers, contract.ClusterSelectionsFunction); err == nil || !strings.Contains(err.Error(), "clusterSelections[1]") {
		t.Errorf("a key that is none, of selections: %v", err)
	}
	// Without its selector, a namespace would see all clusters, and without its flag none.
	if got := arguments(); !slices.Equal(got[len(got)-2:], []string{"--registry-name=fleet", "--cluster-selections=a"}) || slices.Contains(functions(in), contract.ExportsFunction) {
		t.Errorf("with one selector of selections that is not valid, the flags are %q", got)
	}
	in.Registry.Spec.Controllers.ClusterSelections = in.Registry.Spec.Controllers.ClusterSelections[1:]
	if got := functions(in); slices.Contains(got, contract.ClusterSelectionsFunction) {
		t.Errorf("with no selector of selections that is valid, these run: %v", got)
	}
	// What was published goes with its binding, which a mistyped selector does not take.
	in.Reached = []string{"a", "b"}
	want = nil
	for _, binding := range rendered(t, in).Stages[StageController] {
		if strings.HasSuffix(binding.GetName(), ":controller-exports-cluster-profiles") {
			want = append(want, binding.GetNamespace())
		}
		if name := contract.ExportsBinding(in.Registry.Namespace, in.Registry.Name, "cluster-profiles"); strings.Contains(binding.GetName(), "-cluster-profiles") && binding.GetName() != name {
			t.Errorf("the controller looks for %q in place of %q", name, binding.GetName())
		}
	}
	if !slices.Equal(want, []string{"a", "b"}) {
		t.Errorf("with an invalid selector, there are bindings in %q", want)
	}
	var none *operatorv1alpha1.Controllers
	if none.Reaches(contract.ClusterAPIFunction) != nil || InvalidSelector(none, contract.ClusterAPIFunction) != nil {
		t.Error("no controllers reach a namespace")
	}
}
