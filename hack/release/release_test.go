package release

import (
	"fmt"
	"os"
	"path/filepath"
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

// commit commits a file and returns the hashes of the commit and its tree.
func (h history) commit(path, content string) (commit, tree string) {
	h.t.Helper()
	h.write(path, content)
	h.git("add", ".")
	h.git("commit", "--quiet", "--message=test")
	return h.git("rev-parse", "HEAD"), h.git("rev-parse", "HEAD^{tree}")
}

const nowhere = "0123456789012345678901234567890123456789"

func TestCommit(t *testing.T) {
	h := newHistory(t)
	commit, tree := h.commit("main.go", "one")
	h.commit("main.go", "two")
	for _, test := range []struct{ reason, commit, tree, want string }{
		{"the recorded commit", commit, tree, ""},
		{"landed as another commit", nowhere, tree, ""},
		{"another tree than recorded", commit, nowhere, "but tree " + nowhere + " is recorded"},
		{"neither", nowhere, nowhere, "neither commit " + nowhere + " nor a commit with tree " + nowhere},
	} {
		got, err := Commit(t.Context(), h.dir, version.Release{Version: "v0.1.0", Commit: test.commit, Tree: test.tree})
		if (err == nil) != (test.want == "") || err == nil && got != commit || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %q, %v", test.reason, got, err)
		}
	}
}

// TestCommitElsewhere looks for releases that the history of HEAD lacks.
func TestCommitElsewhere(t *testing.T) {
	h := newHistory(t)
	h.commit("main.go", "one")
	h.git("checkout", "--quiet", "-b", "release-0.1")
	patched, patchedTree := h.commit("main.go", "patched")
	h.git("checkout", "--quiet", "--detach", "main")
	tagged, taggedTree := h.commit("main.go", "tagged")
	h.git("tag", "v0.1.2")
	orphan, orphanTree := h.commit("main.go", "on no branch")
	h.git("checkout", "--quiet", "main")
	again, againTree := h.commit("main.go", "on main")
	h.git("checkout", "--quiet", "-b", "other", "HEAD~1")
	h.commit("main.go", "on main")
	h.git("checkout", "--quiet", "main")

	clone := history{t, t.TempDir()}
	clone.git("clone", "--quiet", "--single-branch", "--no-tags", "--branch=main", "file://"+h.dir, ".")
	alone := history{t, t.TempDir()}
	alone.git("clone", "--quiet", "--single-branch", "--no-tags", "--branch=main", "file://"+h.dir, ".")
	alone.git("remote", "remove", "origin")

	for _, test := range []struct {
		reason, dir, commit, tree, ref string
		want, says                     string
	}{
		{"on a branch", h.dir, patched, patchedTree, "", patched, ""},
		{"landed on a branch as another commit", h.dir, nowhere, patchedTree, "", patched, ""},
		{"at a tag", h.dir, tagged, taggedTree, "", tagged, ""},
		{"on no branch", h.dir, orphan, orphanTree, "", "", "is in the history of any branch or tag of this clone; fetch"},
		{"on a branch with another tree than recorded", h.dir, patched, nowhere, "", "", "but tree " + nowhere + " is recorded"},
		{"HEAD has the tree as well, and comes first", h.dir, nowhere, againTree, "", again, ""},
		{"the clone lacks the branch", clone.dir, patched, patchedTree, "", "", "fetch the whole history"},
		{"the table names no such branch", clone.dir, patched, patchedTree, "release-9", "", "its ref release-9 can't be fetched"},
		{"the branch that the table names has no such commit", clone.dir, patched, patchedTree, "v0.1.2", "", "nor in that of v0.1.2 at remote origin"},
		{"the table names the branch", clone.dir, patched, patchedTree, "release-0.1", patched, ""},
		{"the table names the tag", clone.dir, nowhere, taggedTree, "v0.1.2", tagged, ""},
		{"there is no remote", alone.dir, patched, patchedTree, "release-0.1", "", "can't be fetched"},
	} {
		got, err := Commit(t.Context(), test.dir, version.Release{Version: "v0.1.1", Commit: test.commit, Tree: test.tree, Ref: test.ref})
		if got != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %q, %v", test.reason, got, err)
		}
	}
	clone.git("remote", "remove", "origin")
	got, err := Commit(t.Context(), clone.dir, version.Release{Version: "v0.1.2", Commit: tagged, Tree: taggedTree, Ref: "v0.1.2"})
	if got != tagged || err != nil {
		t.Errorf("what was fetched once: %q, %v", got, err)
	}
}

func TestCheckout(t *testing.T) {
	h := newHistory(t)
	commit, _ := h.commit("main.go", "one")
	h.commit("main.go", "two")
	dir, remove, err := Checkout(t.Context(), h.dir, commit)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "main.go")); string(content) != "one" {
		t.Errorf("checked out: %q, %v", content, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the checkout is still there: %v", err)
	}
}

func TestVerify(t *testing.T) {
	h := newHistory(t)
	one, oneTree := h.commit("main.go", "one")
	two, twoTree := h.commit("main.go", "two")
	rendered := func(first, second string) string {
		return "layouts: {v1: a, v2: b}\nrenders: {v0.1.0: {one: " + first + "}, v0.2.0: {one: " + second + "}}\n"
	}
	h.commit(digests, rendered("released", "now"))
	h.commit(layouts+"/v1/service.yaml", "as released")
	h.commit(layouts+"/v2/service.yaml", "as it is by now")
	layout := map[string]string{"v0.1.0": "v1", "v0.2.0": "v2"}
	images := fmt.Sprintf("{clusterregistry-apiserver: %q, clusterregistry-helper: %[1]q, etcd: %[1]q}", "sha256:"+strings.Repeat("a", 64))
	entry := func(release, commit, tree string, released bool) string {
		return fmt.Sprintf("- {version: %s, released: %v, commit: %q, tree: %q, images: %[6]s, etcd: v3.6.14, helper: %[1]s, layout: %[5]s, serves: [v1], reads: [v1], stores: v1, host: {from: \"1.34\", to: \"1.37\"}, kubectl: {from: \"1.32\", to: \"1.37\"}}\n", release, released, commit, tree, layout[release], images)
	}
	file := func(entries ...string) string { return "releases:\n" + strings.Join(entries, "") }
	verify := func(reason, content, want string) {
		t.Helper()
		h.write(table, content)
		if err := Verify(t.Context(), h.dir); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", reason, err)
		}
	}
	h.commit(table, file(entry("v0.1.0", one, oneTree, false), entry("v0.2.0", two, twoTree, false)))
	verify("recorded anew", file(entry("v0.1.0", two, twoTree, false), entry("v0.2.0", two, twoTree, false)), "")
	verify("released", file(entry("v0.1.0", one, oneTree, true), entry("v0.2.0", two, twoTree, false)), "")
	without := func(table string) string { return strings.Replace(table, "images: "+images+", ", "", 1) }
	verify("not released, and not built for publication", without(file(entry("v0.1.0", one, oneTree, false), entry("v0.2.0", two, twoTree, false))), "")
	verify("released without digests", without(file(entry("v0.1.0", one, oneTree, true), entry("v0.2.0", two, twoTree, false))), "v0.1.0): it is released without the digests of its images")
	verify("gone", file(entry("v0.1.0", one, oneTree, true)), "release v0.2.0")
	verify("not in the history", file(entry("v0.1.0", one, oneTree, true), entry("v0.2.0", nowhere, nowhere, false)), "neither commit")
	h.commit(table, file(entry("v0.1.0", one, oneTree, true), entry("v0.2.0", two, twoTree, false)))
	verify("as it was released", file(entry("v0.1.0", one, oneTree, true), entry("v0.2.0", one, oneTree, false)), "")
	verify("changed after its release", file(entry("v0.1.0", two, twoTree, true), entry("v0.2.0", two, twoTree, false)), "make a new patch release instead")
	verify("no longer released", file(entry("v0.1.0", one, oneTree, false), entry("v0.2.0", two, twoTree, false)), "v0.1.0 differs")
	released := file(entry("v0.1.0", one, oneTree, true), entry("v0.2.0", two, twoTree, false))
	verify("other images than it was released with", strings.Replace(released, strings.Repeat("a", 64), strings.Repeat("b", 64), 1), "v0.1.0 differs")
	verify("fetched from elsewhere since", strings.Replace(released, "released: true,", "released: true, ref: release-0.1,", 1), "")
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
	verify("the layout of a released one changes", released, "layout v1 has changed since release v0.1.0, which is rendered from it, was released at commit")
	h.write(layouts+"/v1/service.yaml", "as released")
	h.write(layouts+"/v1/policy.yaml", "new")
	verify("the layout of a released one gets a file", released, "("+layouts+"/v1/policy.yaml)")
}
