package helm

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// notes returns what is printed when the chart has been installed, as without a cluster.
func notes(t *testing.T, args ...string) string {
	t.Helper()
	out := run(t, append([]string{"install", "any", chart, "--namespace=" + namespace, "--dry-run=client"}, args...)...)
	_, text, found := strings.Cut(out, "\nNOTES:\n")
	if !found {
		t.Fatalf("there are no notes in:\n%s", out)
	}
	return text
}

// TestNotes has the notes say the next command, which brings up a registry where the
// values allow one.
func TestNotes(t *testing.T) {
	for _, test := range []struct {
		set, namespace string
		mode           operatorv1alpha1.Mode
		where          string
	}{
		{"replicas=1", "default", operatorv1alpha1.ModeAggregated, "in the namespace clusterregistry-system.\n"},
		{"watchNamespaces={team-a,team-b}", "team-a", operatorv1alpha1.ModeAggregated, "for registries in team-a, team-b.\n"},
		{"registries.aggregatedNamespaces={platform}", "platform", operatorv1alpha1.ModeAggregated, "in the namespace clusterregistry-system.\n"},
		{"registries.aggregatedNamespaces=null", "default", operatorv1alpha1.ModeIndependent, "in the namespace clusterregistry-system.\n"},
	} {
		t.Run(test.set, func(t *testing.T) {
			t.Parallel()
			text := notes(t, "--set="+test.set)
			for _, want := range []string{
				test.where, "cert-manager is not installed", "kubectl --namespace=clusterregistry-system rollout status deployment/clusterregistry-operator",
			} {
				if !strings.Contains(text, want) {
					t.Errorf("they lack %q:\n%s", want, text)
				}
			}
			_, manifest, _ := strings.Cut(text, "kubectl apply -f - <<'END'\n")
			manifest, _, found := strings.Cut(manifest, "\nEND\n")
			var registry operatorv1alpha1.ClusterRegistry
			if err := yaml.UnmarshalStrict([]byte(manifest), &registry); err != nil || !found {
				t.Fatalf("%v: they have no registry: %s", err, text)
			}
			if registry.Namespace != test.namespace || registry.Spec.Mode != test.mode || registry.Spec.Version == "" {
				t.Errorf("the registry is in %s, of the mode %s, want %s and %s", registry.Namespace, registry.Spec.Mode, test.namespace, test.mode)
			}
		})
	}
}
