package framework

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// everywhere is the operator for all namespaces, filled with the folder of the
	// manifests and patches.
	everywhere = `
resources: [%s/operator]
patches:
%s
`
	// listed is the operator for some, filled with the folder of the manifests, the
	// namespaces (each has a folder of its name), patches and the namespaces again.
	listed = `
resources: [%s/operator-namespaced/operator, %s]
patches:
%s
- target: {kind: Deployment, name: clusterregistry-operator}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--watch-namespaces=%s"}
`
	// permitted is what it may do in a namespace, filled with that and the folder.
	permitted = `
namespace: %s
resources: [../%s/operator-namespaced/namespace]
`
)

// OperatorOverlay writes a kustomization of the operator with patches, the items of
// a list in YAML, and returns its folder. The operator is for the given namespaces,
// as a user's overlay of manifests/operator-namespaced would make it, or for all
// when there are none.
func OperatorOverlay(t *testing.T, patches string, namespaces ...string) string {
	t.Helper()
	dir := t.TempDir()
	// kustomize takes no absolute paths.
	manifests, err := filepath.Rel(dir, filepath.Join(Root(t), "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(content string, path ...string) {
		file := filepath.Join(append([]string{dir}, path...)...)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const name = "kustomization.yaml"
	if len(namespaces) == 0 {
		write(fmt.Sprintf(everywhere, manifests, patches), name)
		return dir
	}
	write(fmt.Sprintf(listed, manifests, strings.Join(namespaces, ", "), patches, strings.Join(namespaces, ",")), name)
	for _, namespace := range namespaces {
		write(fmt.Sprintf(permitted, namespace, manifests), namespace, name)
	}
	return dir
}
