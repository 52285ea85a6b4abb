package project

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// goVersion returns the version of Go with which CI tests, and releases are made.
func goVersion(t *testing.T) string {
	t.Helper()
	version := strings.TrimSuffix(read(t, ".go-version"), "\n")
	if !regexp.MustCompile(`^1\.\d+\.\d+$`).MatchString(version) {
		t.Fatalf(".go-version has %q, want a version of Go with its patch, such as 1.26.8", version)
	}
	return version
}

// TestGoIsNewEnough expects the Go of CI to build each module: GitHub's action for Go forbids
// it to get a newer one. What the local cluster runs is built by whatever Go its modules name.
func TestGoIsNewEnough(t *testing.T) {
	version, modules := goVersion(t), 0
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == ".git" || name == "bin" || name == "hack/cluster/components" || entry.Name() == "node_modules" || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.Name() != "go.mod" {
			return nil
		}
		modules++
		file, err := modfile.Parse(name, []byte(read(t, name)), nil)
		if err != nil {
			return err
		}
		if file.Go == nil || semver.Compare("v"+version, "v"+file.Go.Version) < 0 {
			t.Errorf("%s needs Go %s, and .go-version has %s: raise it, and make the digests of releases again that are not released", name, file.Go.Version, version)
		}
		return nil
	})
	if err != nil || modules < 10 {
		t.Errorf("%v: there are %d modules", err, modules)
	}
}

// TestGoIsTheSame expects each workflow to take the Go of .go-version: digests of images
// depend on it, and are compared.
func TestGoIsTheSame(t *testing.T) {
	const want = "go-version-file: .go-version\n"
	uses := 0
	err := fs.WalkDir(os.DirFS(root), ".github", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text := read(t, name)
		here := strings.Count(text, "uses: actions/setup-go@")
		if got := strings.Count(text, want); got != here || strings.Count(text, "go-version") != 2*here {
			t.Errorf("%s sets up Go %d times, %d times with %q", name, here, got, want)
		}
		uses += here
		return nil
	})
	if err != nil || uses < 3 {
		t.Errorf("%v: Go is set up %d times", err, uses)
	}
	for _, step := range []string{"1", "4"} {
		_, text, found := strings.Cut(read(t, "RELEASE.md"), "\n"+step+". ")
		text, _, _ = strings.Cut(text, "\n")
		if !found || !strings.Contains(text, "`.go-version`") {
			t.Errorf("step %s of RELEASE.md does not say which Go it needs", step)
		}
	}
}
