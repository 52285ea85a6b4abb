package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUnreachable has kubeconfigs that lead to no registry, and expects which one it was
// and what to do.
func TestUnreachable(t *testing.T) {
	const content = `{apiVersion: v1, kind: Config, current-context: hub, clusters: [{name: hub, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: hub, context: {cluster: hub}}]}`
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ reason, file, context, begins, ends string }{
		{"no server", path, "", "list the clusters: the registry (context hub) can't be reached: ", "; check the address in the kubeconfig and the network"},
		{"no file", path + ".gone", "", "find the registry's kubeconfig: stat " + path + ".gone: ", "; name a file with --kubeconfig and a context with --context"},
		{"no context", path, "west", `find the registry's kubeconfig: context "west" does not exist`, "; name a file with --kubeconfig and a context with --context"},
	} {
		env := New()
		*env.Flags.KubeConfig, *env.Flags.Context = test.file, test.context
		registry, err := env.Registry()
		if err == nil {
			_, err = registry.ClusterregistryV1beta1().Clusters().List(t.Context(), metav1.ListOptions{})
			err = env.Explain("list the clusters", OfRegistry, err)
		}
		if err == nil || !strings.HasPrefix(err.Error(), test.begins) || !strings.HasSuffix(err.Error(), test.ends) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
