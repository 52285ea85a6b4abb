package project

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/hack/product"
)

const workflows = ".github/workflows"

// lint returns what actionlint finds in the workflows of a directory.
func lint(t *testing.T, dir string) []*actionlint.Error {
	t.Helper()
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{WorkingDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	project, err := actionlint.NewProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	found, err := linter.LintDir(filepath.Join(dir, workflows), project)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestWorkflows has actionlint read the workflows, with the actions that they use.
func TestWorkflows(t *testing.T) {
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range lint(t, dir) {
		t.Error(found)
	}
}

// TestLinter breaks the workflow for releases, which actionlint has to see.
func TestLinter(t *testing.T) {
	for change, says := range map[string][2]string{
		"an output that no step has": {"steps.make.outputs.sums", "steps.made.outputs.sums"},
		"a job that is not there":    {"needs: again", "needs: twice"},
		"an output of the action":    {"HERE: ${{ steps.make.outputs.sums }}", "HERE: ${{ steps.make.outputs.sum }}"},
		"an unknown permission":      {"id-token: write", "id-tokens: write"},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, ".github"), os.DirFS(filepath.Join(root, ".github"))); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, workflows, "release.yaml")
		text := read(t, workflows+"/release.yaml")
		if !strings.Contains(text, says[0]) {
			t.Fatalf("the workflow has no %q", says[0])
		}
		if err := os.WriteFile(file, []byte(strings.Replace(text, says[0], says[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if len(lint(t, dir)) == 0 {
			t.Errorf("%s is not found", change)
		}
	}
}

var (
	used   = regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`)
	pinned = regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

// TestActionsArePinned expects actions of others by their commit, the same everywhere, with
// the version beside it: a tag can be moved.
func TestActionsArePinned(t *testing.T) {
	seen := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".github", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(name, "workflows/") && !strings.Contains(name, "actions/") {
			return err
		}
		for _, match := range used.FindAllStringSubmatch(read(t, name), -1) {
			if strings.HasPrefix(match[1], "./") {
				continue
			}
			action, _, _ := strings.Cut(match[1], "@")
			if !pinned.MatchString(match[1]) || seen[action] != "" && seen[action] != match[1] {
				t.Errorf("%s uses %s, want a commit with its version, the same as elsewhere (%q)", name, match[1], seen[action])
			}
			seen[action] = match[1]
		}
		return nil
	})
	if err != nil || len(seen) == 0 {
		t.Errorf("%v: %d actions are used", err, len(seen))
	}
}

// TestRights expects workflows to have no rights but to read, and jobs that have more to
// name them.
func TestRights(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, workflows))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		var workflow struct {
			Permissions map[string]string `json:"permissions"`
		}
		if err := yaml.Unmarshal([]byte(read(t, workflows+"/"+entry.Name())), &workflow); err != nil {
			t.Fatal(err)
		}
		if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" {
			t.Errorf("%s has the permissions %v", entry.Name(), workflow.Permissions)
		}
	}
}

// TestModulesAreTagged expects a release to tag each Go module that others import.
func TestModulesAreTagged(t *testing.T) {
	if line := "for module in " + strings.Join(product.Libraries, " ") + "; do\n"; !strings.Contains(read(t, workflows+"/release.yaml"), line) {
		t.Errorf("the workflow for releases lacks %q", line)
	}
}
