package reliability

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

var update = flag.Bool("update", false, "take what was measured in this checkout into results.jsonl and results.md")

// file has what was measured, in this directory.
const file = "results.jsonl"

// TestPage compares the page with what was measured, in results.jsonl.
func TestPage(t *testing.T) {
	const path = "results.md"
	measured, err := parse(read(t, file))
	if *update {
		measured, err = results(t)
	}
	if err != nil {
		t.Fatal(err)
	}
	content, err := printResults(measured)
	if err != nil {
		t.Fatal(err)
	}
	page, err := fill(string(read(t, path)), table(measured))
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

// results are those of results.jsonl, and those that were measured in this checkout since.
func results(t *testing.T) (map[string]result, error) {
	t.Helper()
	all, err := parse(read(t, file))
	if err != nil {
		return nil, err
	}
	here, err := parse(read(t, filepath.Join(framework.Root(t), ".test", "reliability.jsonl")))
	maps.Copy(all, here)
	return all, err
}

// TestUnmeasured leaves out the cells that have a result, and no others.
func TestUnmeasured(t *testing.T) {
	all := cells()
	measured := map[string]result{all[0].id(): {}, all[2].id(): {}}
	left := unmeasured(all, measured)
	if len(left) != len(all)-2 || left[0].id() != all[1].id() || left[1].id() != all[3].id() {
		t.Errorf("of %d cells, %d are left, the first of which are %s and %s", len(all), len(left), left[0], left[1])
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
