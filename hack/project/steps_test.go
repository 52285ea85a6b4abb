package project

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// step is a script of a workflow or an action.
type step struct {
	Name string `json:"name"`
	Run  string `json:"run"`
}

// script returns what a step runs.
func script(t *testing.T, file, name string) string {
	t.Helper()
	var is struct {
		Jobs map[string]struct {
			Steps []step `json:"steps"`
		} `json:"jobs"`
		Runs struct {
			Steps []step `json:"steps"`
		} `json:"runs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, file)), &is); err != nil {
		t.Fatal(err)
	}
	steps := is.Runs.Steps
	for _, job := range is.Jobs {
		steps = append(steps, job.Steps...)
	}
	for _, step := range steps {
		if step.Name == name && step.Run != "" {
			return step.Run
		}
	}
	t.Fatalf("%s has no step %q", file, name)
	return ""
}

// run runs a step of the release v0.3.0 as GitHub does, in an empty directory dir/work, with
// a script in the place of gh.
func run(t *testing.T, dir, gh, script string) (string, error) {
	t.Helper()
	for name, content := range map[string]string{"bin/gh": "#!/bin/bash\n" + gh, "work/CHANGELOG.md": "## v0.3.0\nnotes\n", "work/dist/v0.3.0/SHA256SUMS": "sums\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script)
	command.Dir = filepath.Join(dir, "work")
	command.Env = []string{"PATH=" + dir + "/bin:" + os.Getenv("PATH"), "STATE=" + dir, "RUNNER_TEMP=" + dir, "GITHUB_REPOSITORY=a/b", "GITHUB_REF_NAME=v0.3.0", "GITHUB_SHA=0123"}
	out, err := command.CombinedOutput()
	return string(out), err
}

// TestPreviousRelease expects the images of the highest version below the release, whatever
// was published last, and never of itself, as when a run is repeated.
func TestPreviousRelease(t *testing.T) {
	const gh = `if test "$2" = list; then cat "$STATE/published"; exit; fi
echo "$3" > "$STATE/downloaded"
mkdir "$5" && cd "$5" && echo image > a.tar && echo "$(sha256sum < a.tar | cut -d' ' -f1)  images/a.tar" > SHA256SUMS
`
	get := script(t, ".github/actions/make/action.yml", "Get the previous release")
	for published, want := range map[string]string{
		"":                                      "",
		"v0.3.0\n":                              "",
		"v0.4.0\n":                              "",
		"v0.2.1\nv0.3.0\nv0.2.0\n":              "v0.2.1\n",
		"v0.2.9\nv0.4.0\nv0.2.10\n":             "v0.2.10\n",
		"v0.2.0-rc.1\nv0.2.0\n":                 "v0.2.0\n",
		"v0.3.0-rc.10\nv0.3.0-rc.9\nv0.2.1\n":   "v0.3.0-rc.10\n",
		"v0.3.1-rc.1\nv0.2.0\nv0.3.1\nv0.1.0\n": "v0.2.0\n",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "published"), []byte(published), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := run(t, dir, gh, get)
		got, _ := os.ReadFile(filepath.Join(dir, "downloaded")) // there is none where nothing is downloaded
		if err != nil || string(got) != want {
			t.Errorf("after %q: got %q, want %q: %v: %s", published, got, want, err, out)
		}
		if _, err := os.Stat(filepath.Join(dir, "previous/images/a.tar")); (err == nil) != (want != "") {
			t.Errorf("after %q: %v", published, err)
		}
	}
	if _, err := run(t, t.TempDir(), "exit 1\n", get); err == nil {
		t.Error("releases that cannot be listed are taken for none")
	}
}

// TestTagsOfModules makes the tags, makes them again, as when a run is repeated, and finds
// one of another commit.
func TestTagsOfModules(t *testing.T) {
	const gh = `if test "$2" = --silent; then
  file=$STATE/refs/${5#ref=refs/}
  test ! -e "$file" || { echo "Reference already exists (HTTP 422)" >&2; exit 1; }
  mkdir -p "${file%/*}" && echo "${7#sha=}" > "$file"
else
  cat "$STATE/refs/${2#repos/a/b/git/ref/}"
fi
`
	dir, tag := t.TempDir(), script(t, workflows+"/release.yaml", "Tag the Go modules")
	made := filepath.Join(dir, "refs/tags/client/v0.3.0")
	for range 2 {
		if out, err := run(t, dir, gh, tag); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got, err := os.ReadFile(made); string(got) != "0123\n" {
			t.Fatalf("the tag is of %q: %v", got, err)
		}
	}
	if err := os.WriteFile(made, []byte("4567\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, dir, gh, tag); err == nil || !strings.Contains(out, "::error::tags/client/v0.3.0 is not made") {
		t.Errorf("with a tag of another commit: %v: %s", err, out)
	}
}

// TestPublishFiles publishes the files, finds them published, and finds others published.
func TestPublishFiles(t *testing.T) {
	const gh = `if test "$1" = api; then cat "$STATE/digest"; exit; fi
echo "$@" > "$STATE/created"
`
	publish := script(t, workflows+"/release.yaml", "Publish the files")
	for digest, want := range map[string]struct{ creates, says string }{
		"": {creates: "release create v0.3.0 --verify-tag"},
		fmt.Sprintf("sha256:%x\n", sha256.Sum256([]byte("sums\n"))): {},
		"sha256:12\n": {says: "is published with another SHA256SUMS (sha256:12)"},
	} {
		dir := t.TempDir()
		if digest != "" {
			if err := os.WriteFile(filepath.Join(dir, "digest"), []byte(digest), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := run(t, dir, gh, publish)
		created, _ := os.ReadFile(filepath.Join(dir, "created")) // there is none where nothing is created
		if (err != nil) != (want.says != "") || !strings.Contains(out, want.says) || !strings.HasPrefix(string(created), want.creates) || (len(created) > 0) != (want.creates != "") {
			t.Errorf("where %q is published: %v: %s; created %q", digest, err, out, created)
		}
	}
}
