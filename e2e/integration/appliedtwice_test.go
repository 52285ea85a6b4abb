package integration

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/e2e/framework"
)

// testAppliedTwice applies the samples and the examples of the guide, which have every field, as
// tools for GitOps do, again and again: by server-side apply, and by the three-way merge of a kind
// that the client does not know. The second time changes nothing, not even who manages which field,
// and what is stored has what was written as it was written.
func testAppliedTwice(t *testing.T, kubectl *framework.Kubectl) {
	kubectl.Run("create", "namespace", "argocd") // of a sample
	manifests := 0
	for where, manifest := range manifestsWritten(t) {
		for _, way := range []string{"--server-side=false", "--server-side"} {
			shown := []string{"--show-managed-fields", "-o", "yaml", "-f", "-"}
			apply := append([]string{"apply", way, "--validate=strict"}, shown...)
			kubectl.Stdin(manifest).Run(apply...)
			// As the operator does at once. Until then, the next write brings the status that
			// clients see by default to what is stored.
			first := kubectl.Stdin(manifest).Run(append([]string{"patch", "--subresource=status", "--type=merge", `--patch={"status":{"observedGeneration":1}}`}, shown...)...)
			if second := kubectl.Stdin(manifest).Run(apply...); second != first {
				t.Errorf("%s: applied again with %s, it is\n%s\nafter\n%s", where, way, second, first)
			}
			var wrote, stored any
			if err := yaml.Unmarshal([]byte(manifest), &wrote); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(first), &stored); err != nil {
				t.Fatal(err)
			}
			for _, path := range drifted("", wrote, stored) {
				t.Errorf("%s: applied with %s, it is stored with another value of %s", where, way, path)
			}
			kubectl.Stdin(manifest).Run("delete", "-f", "-")
		}
		manifests++
	}
	if manifests < 8 {
		t.Errorf("only %d manifests were found", manifests)
	}
}

// manifestsWritten returns the samples and the examples of the guide, by where they are.
func manifestsWritten(t *testing.T) map[string]string {
	t.Helper()
	out, root := map[string]string{}, framework.Root(t)
	err := filepath.WalkDir(filepath.Join(root, "manifests", "samples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		out[filepath.Base(path)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, example := range guideExamples(t) {
		out[fmt.Sprintf("example %d of configure.md", i+1)] = example
	}
	return out
}

// drifted returns the paths below which something written is stored otherwise. In maps, the host
// may have added to it; a list is compared as a whole, as tools do that know no keys.
func drifted(path string, wrote, stored any) (out []string) {
	fields, is := wrote.(map[string]any)
	has, also := stored.(map[string]any)
	if !is || !also {
		if !reflect.DeepEqual(wrote, stored) {
			return []string{path}
		}
		return nil
	}
	for name, value := range fields {
		out = append(out, drifted(path+"."+name, value, has[name])...)
	}
	return out
}
