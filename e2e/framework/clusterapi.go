package framework

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// clusterAPISum is the checksum of Cluster API's module, of the version whose types this
// module uses: go.sum has only that of the types.
const clusterAPISum = "h1:Cu0WV9dSdL+Do22q2LJ4OBZdm+d/6ep/L04yqFnifuM="

// ClusterAPICRD returns Cluster API's own CRD of its Clusters, of the version whose types
// this module uses. It has no conversion: both versions have the fields that tests write.
func ClusterAPICRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	output := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...) //nolint:gosec // a test's own arguments
		cmd.Dir = Root(t)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v", strings.Join(args, " "), err)
		}
		return out
	}
	version := strings.TrimSpace(string(output("list", "-m", "-f", "{{.Version}}", "sigs.k8s.io/cluster-api/api")))
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal(output("mod", "download", "-json", "sigs.k8s.io/cluster-api@"+version), &module); err != nil {
		t.Fatal(err)
	}
	if module.Sum != clusterAPISum {
		t.Fatalf("sigs.k8s.io/cluster-api %s has the checksum %s, not %s: if its types were upgraded, upgrade this, too", version, module.Sum, clusterAPISum)
	}
	content, err := os.ReadFile(filepath.Join(module.Dir, "core", "config", "crd", "bases", "cluster.x-k8s.io_clusters.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}
