package release

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/hack/git"
	"github.com/clusterregistry/operator/operator/version"
)

// history is a repository of a test.
type history struct {
	t   *testing.T
	dir string
}

func newHistory(t *testing.T) history {
	h := history{t, t.TempDir()}
	h.git("init", "--quiet", "--initial-branch=main")
	return h
}

func (h history) git(args ...string) string {
	h.t.Helper()
	out, err := git.Run(h.t.Context(), h.dir, append([]string{"-c", "user.name=test", "-c", "user.email=test@example"}, args...)...)
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

func (h history) write(path, content string) {
	h.t.Helper()
	path = filepath.Join(h.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// commit commits a file.
func (h history) commit(path, content string) {
	h.t.Helper()
	h.write(path, content)
	h.git("add", ".")
	h.git("commit", "--quiet", "--message=test")
}

// TestSource finds what a release is built from.
func TestSource(t *testing.T) {
	h := newHistory(t)
	h.commit("main.go", "one")
	h.git("tag", "v0.1.0")
	h.commit("main.go", "two")
	h.write("main.go", "not committed")
	table := []version.Release{{Version: "v0.1.0", Released: true}, {Version: "v0.1.1", Released: true}, {Version: "v0.2.0"}, {Version: "v0.3.0", Released: true}}
	for _, test := range []struct {
		reason, release, want, says string
	}{
		{"released: its tag", "v0.1.0", "one", ""},
		{"released, and the clone lacks the tag", "v0.1.1", "", "release v0.1.1 is built from its tag, which this clone does not have"},
		{"not released: the work tree", "v0.2.0", "not committed", ""},
		{"the newest, while it is being released", "v0.3.0", "not committed", ""},
	} {
		of, err := version.Find(table, test.release)
		if err != nil {
			t.Fatal(err)
		}
		dir, remove, err := Source(t.Context(), h.dir, table, of)
		if err != nil || test.says != "" {
			if test.says == "" || err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v", test.reason, err)
			}
			continue
		}
		if content, err := os.ReadFile(filepath.Join(dir, "main.go")); string(content) != test.want {
			t.Errorf("%s: %q, %v", test.reason, content, err)
		}
		if err := remove(); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
		if _, err := os.Stat(dir); (err == nil) != (dir == h.dir) {
			t.Errorf("%s: after its removal: %v", test.reason, err)
		}
	}
}

// TestOverlay builds a program with the table of the release before the newest, and with the
// whole one.
func TestOverlay(t *testing.T) {
	source := t.TempDir()
	content, err := os.ReadFile("../../" + table)
	if err != nil {
		t.Fatal(err)
	}
	releases, err := version.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	older, err := Older(releases)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(source, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(table, string(content))
	write("go.mod", "module example\n\ngo 1.26\n")
	write("operator/version/main.go", "package main\n\nimport _ \"embed\"\n\n//go:embed releases.yaml\nvar table string\n\nfunc main() { print(table) }\n")
	overlay, remove, err := Overlay(source, older)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		overlay string
		want    []version.Release
	}{{"", releases}, {overlay, releases[:len(releases)-1]}} {
		cmd := exec.CommandContext(t.Context(), "go", "run", "-overlay", test.overlay, "./operator/version")
		cmd.Dir = source
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got, err := version.Parse(out); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("with the overlay %q, the program has %v, %v", test.overlay, got, err)
		}
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(overlay); err == nil {
		t.Error("the overlay is still there")
	}
}

func TestVerify(t *testing.T) {
	h := newHistory(t)
	rendered := func(first, second string) string {
		return "layouts: {v1: a, v2: b}\nrenders: {v0.1.0: {one: " + first + "}, v0.2.0: {one: " + second + "}}\n"
	}
	h.commit(digests, rendered("released", "now"))
	h.commit(layouts+"/v1/service.yaml", "as released")
	h.commit(layouts+"/v2/service.yaml", "as it is by now")
	layout := map[string]string{"v0.1.0": "v1", "v0.2.0": "v2"}
	images := fmt.Sprintf("{clusterregistry-apiserver: %q, clusterregistry-helper: %[1]q, etcd: %[1]q, clusterregistry-controller: %[1]q, clusterregistry-backup: %[1]q}", "sha256:"+strings.Repeat("a", 64))
	entry := func(release, etcd string, released bool) string {
		return fmt.Sprintf("- {version: %s, released: %v, images: %[5]s, etcd: %[3]s, helper: %[1]s, layout: %[4]s, serves: [v1], reads: [v1], stores: v1, host: {from: \"1.34\", to: \"1.37\"}, kubectl: {from: \"1.32\", to: \"1.37\"}}\n", release, released, etcd, layout[release], images)
	}
	const one, two = "v3.6.14", "v3.7.3"
	file := func(entries ...string) string { return "releases:\n" + strings.Join(entries, "") }
	verify := func(reason, content, want string) {
		t.Helper()
		h.write(table, content)
		if err := Verify(t.Context(), h.dir); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", reason, err)
		}
	}
	h.commit(table, file(entry("v0.1.0", one, false), entry("v0.2.0", two, false)))
	h.git("tag", "v0.0.1")
	h.git("tag", "vnext") // no version
	verify("no release is final at the tag", file(entry("v0.1.0", two, false), entry("v0.2.0", two, false)), "")
	verify("released", file(entry("v0.1.0", one, true), entry("v0.2.0", two, false)), "")
	without := func(table string) string { return strings.Replace(table, "images: "+images+", ", "", 1) }
	verify("not released, and not built for publication", without(file(entry("v0.1.0", one, false), entry("v0.2.0", two, false))), "")
	verify("released without digests", without(file(entry("v0.1.0", one, true), entry("v0.2.0", two, false))), "v0.1.0): it is released without the digests of its images")
	h.commit(table, file(entry("v0.1.0", one, true), entry("v0.2.0", two, false)))
	h.git("tag", "v0.1.0")
	verify("as it was released", file(entry("v0.1.0", one, true), entry("v0.2.0", one, false)), "")
	verify("gone", file(entry("v0.2.0", two, false)), "release v0.1.0, which tag v0.1.0 has, is gone")
	verify("changed after its release", file(entry("v0.1.0", two, true), entry("v0.2.0", two, false)), "make a new patch release instead")
	verify("no longer released", file(entry("v0.1.0", one, false), entry("v0.2.0", two, false)), "v0.1.0 differs")
	released := file(entry("v0.1.0", one, true), entry("v0.2.0", two, false))
	verify("other images than it was released with", strings.Replace(released, strings.Repeat("a", 64), strings.Repeat("b", 64), 1), "v0.1.0 differs")
	h.write(digests, rendered("released", "later"))
	verify("a release that is not released renders something else", released, "")
	h.write(digests, rendered("otherwise", "later"))
	verify("a released one renders something else", released, "v0.1.0 is released, and no longer renders fixture one as it did")
	h.write(digests, "layouts: {}\nrenders: {}\n")
	verify("its digest is gone", released, "fixture one is gone, which holds v0.1.0")
	h.write(digests, rendered("released", "later"))
	verify("and no longer", released, "")
	h.write(layouts+"/v2/service.yaml", "as it will be")
	verify("the layout of a release that is not released changes", released, "")
	h.write(layouts+"/v1/service.yaml", "otherwise")
	verify("the layout of a released one changes", released, "layout v1 has changed since tag v0.1.0, which has release v0.1.0 that is rendered from it")
	h.write(layouts+"/v1/service.yaml", "as released")
	h.write(layouts+"/v1/policy.yaml", "new")
	verify("the layout of a released one gets a file", released, "("+layouts+"/v1/policy.yaml)")
}
