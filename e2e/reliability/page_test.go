package reliability

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

var update = flag.Bool("update", false, "take what was measured in this checkout into results.jsonl and docs/reference/reliability.md")

// TestPage compares the page with what was measured, in results.jsonl.
func TestPage(t *testing.T) {
	const file = "results.jsonl"
	path := filepath.Join(framework.Root(t), "docs", "reference", "reliability.md")
	results, err := parse(read(t, file))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		measured, err := parse(read(t, filepath.Join(framework.Root(t), ".test", "reliability.jsonl")))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(results, measured)
	}
	content, err := printResults(results)
	if err != nil {
		t.Fatal(err)
	}
	page, err := fill(string(read(t, path)), table(results))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for path, want := range map[string]string{file: string(content), path: page} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if string(read(t, path)) != want {
			t.Errorf("%s is not what was measured: run make update-reliability", path)
		}
	}
}

// read reads a file. None is as good as an empty one.
func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return content
}
