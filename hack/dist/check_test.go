package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/hack/git"
	"github.com/clusterregistry/operator/hack/install/render"
	"github.com/clusterregistry/operator/hack/product"
	history "github.com/clusterregistry/operator/hack/release"
	"github.com/clusterregistry/operator/operator/version"
)

func TestWellFormed(t *testing.T) {
	for version, reason := range map[string]string{
		"v0.2.0": "", "v1.0.0-rc.1": "",
		"":          "none is given",
		"0.2.0":     "tags begin with v",
		"v0.2":      "three numbers",
		"v0.2.0+x":  "no tag of an image has a plus",
		"v0.02.0":   "no leading zeros",
		"v0.2.0\n":  "nothing after it",
		"../v0.2.0": "it names a folder",
	} {
		if err := wellFormed(version); (err != nil) != (reason != "") {
			t.Errorf("%q (%s): %v", version, reason, err)
		}
	}
}

// checkout makes a repository that can be released as v0.2.0.
func checkout(t *testing.T) string {
	t.Helper()
	table, err := os.ReadFile("../../operator/version/releases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gitIn(t, dir, "init", "--quiet")
	change(t, dir, "CHANGELOG.md", "# Changelog\n\n## v0.2.0\n- [FEATURE] Ready.\n")
	change(t, dir, "manifests/olm/catalog.yaml", "entries:\n- name: clusterregistry-operator.v0.2.0\n")
	change(t, dir, "operator/version/releases.yaml", strings.ReplaceAll(withDigests(t, table), "released: false", "released: true"))
	for _, module := range append([]string{"."}, product.Libraries...) {
		change(t, dir, filepath.Join(module, "go.mod"), "module "+path.Join(product.Module, module)+"\n\nrequire github.com/clusterregistry/operator/apis/clusterregistry v0.2.0\n")
	}
	commit(t, dir)
	return dir
}

// withDigests returns a table of releases with digests of all images.
func withDigests(t *testing.T, table []byte) string {
	t.Helper()
	releases, err := version.Parse(table)
	if err != nil {
		t.Fatal(err)
	}
	digests := digestsOf(releases)
	for _, r := range releases {
		for _, image := range r.Runs() {
			if name := image.Name + ":" + image.Tag; digests[name] == "" {
				digests[name] = "sha256:" + strings.Repeat("a", 64)
			}
		}
	}
	out, _, err := history.Record(table, digests)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	if _, err := git.Run(t.Context(), dir, append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com"}, args...)...); err != nil {
		t.Fatal(err)
	}
}

func change(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func commit(t *testing.T, dir string) {
	t.Helper()
	gitIn(t, dir, "add", "--all")
	gitIn(t, dir, "commit", "--quiet", "--allow-empty", "--message=test")
}

func TestReleasable(t *testing.T) {
	const repository = "registry.example/clusterregistry"
	ready := render.Image{Repository: repository, Reference: repository + "/clusterregistry-operator:v0.2.0"}
	for _, test := range []struct {
		reason string
		change func(dir string)
		image  render.Image
		says   string
	}{
		{reason: "ready"},
		{reason: "the same release once more", change: func(dir string) { gitIn(t, dir, "tag", "v0.2.0") }},
		{reason: "the tag is another commit's", change: func(dir string) { gitIn(t, dir, "tag", "v0.2.0"); commit(t, dir) }, says: "v0.2.0 exists already, at another commit"},
		{reason: "a file that is not committed", change: func(dir string) { change(t, dir, "new.go", "package new\n") }, says: "?? new.go"},
		{reason: "the manifests name another version", image: render.Image{Repository: repository, Reference: repository + "/clusterregistry-operator:v0.1.0"}, says: "set newTag"},
		{reason: "nobody wrote down what changed", change: func(dir string) {
			change(t, dir, "CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## v0.2.0-rc.1\n")
			commit(t, dir)
		}, says: `no section "## v0.2.0"`},
		{reason: "OLM is not told", change: func(dir string) {
			change(t, dir, "manifests/olm/catalog.yaml", "entries:\n- name: clusterregistry-operator.v0.2.0-rc.1\n")
			commit(t, dir)
		}, says: "does not list clusterregistry-operator.v0.2.0"},
		{reason: "a module that would be imported with the one before", change: func(dir string) {
			change(t, dir, "client/go.mod", "module github.com/clusterregistry/operator/client\n\nrequire github.com/clusterregistry/operator/apis/clusterregistry v0.1.0\n")
			commit(t, dir)
		}, says: "client/go.mod requires github.com/clusterregistry/operator/apis/clusterregistry@v0.1.0, not v0.2.0"},
		{reason: "a registry that may change", change: func(dir string) {
			table := filepath.Join(dir, "operator/version/releases.yaml")
			content, err := os.ReadFile(table)
			if err != nil {
				t.Fatal(err)
			}
			change(t, dir, "manifests/olm/catalog.yaml", "entries:\n- name: clusterregistry-operator.v0.2.0\n")
			change(t, dir, "operator/version/releases.yaml", strings.Replace(string(content), "released: true", "released: false", 1))
			commit(t, dir)
		}, says: "v0.1.0 may change yet"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			dir := checkout(t)
			if test.change != nil {
				test.change(dir)
			}
			if test.image == (render.Image{}) {
				test.image = ready
			}
			err := releasable(t.Context(), dir, "v0.2.0", test.image)
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
