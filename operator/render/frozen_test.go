package render

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterregistry/operator/operator/version"
)

// TestReleasedIsFrozen changes a layout, as an edit would, and records that: it is
// refused as soon as a release with the layout is released.
func TestReleasedIsFrozen(t *testing.T) {
	file := root + "/v1/base/server.yaml"
	tree := fstest.MapFS{file: {Data: []byte("as released")}, root + "/v2/base/server.yaml": {Data: []byte("of another")}}
	digests := func(renders string) version.Digests {
		return version.Digests{Layouts: layoutDigests(t, tree), Renders: map[string]map[string]string{"v0.1.0": {"one": renders}}}
	}
	path := filepath.Join(t.TempDir(), "digests.yaml")
	releases := []version.Release{{Version: "v0.1.0", Layout: "v1"}, {Version: "v0.2.0", Layout: "v2"}}
	recorded := func() string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	step := func(reason, renders, refusal string) {
		t.Helper()
		before, _ := os.ReadFile(path)
		err := record(path, digests(renders), releases)
		if (err == nil) != (refusal == "") || err != nil && !strings.Contains(err.Error(), refusal) {
			t.Errorf("%s: %v", reason, err)
		}
		if after := recorded(); refusal != "" && after != string(before) {
			t.Errorf("%s: refused, and yet written:\n%s", reason, after)
		}
	}
	step("nothing was recorded", "a", "")
	tree[file].Data = []byte("changed before the release")
	step("nothing is released", "b", "")
	unchanged := recorded()
	releases[0].Released = true
	step("released as it is", "b", "")
	if recorded() != unchanged {
		t.Error("a release alone changes digests")
	}
	step("a release that is released renders something else", "c", "v0.1.0 is released, and no longer renders fixture one")
	tree[root+"/v1/base/new.yaml"] = &fstest.MapFile{Data: []byte("a file more")}
	step("its layout gets a file", "b", "layout v1 has changed")
	delete(tree, root+"/v1/base/new.yaml")
	tree[file].Data = []byte("changed after the release")
	step("its layout changes", "b", "layout v1 has changed, and v0.1.0, which is released, is rendered from it")
	tree[file].Data = []byte("changed before the release")
	tree[root+"/v2/base/server.yaml"].Data = []byte("changed")
	step("another layout changes", "b", "")
}

// TestDifferences looks at each way in which digests can differ.
func TestDifferences(t *testing.T) {
	was := version.Digests{Layouts: map[string]string{"v1": "a", "v2": "b"}, Renders: map[string]map[string]string{"v0.1.0": {"one": "c", "gone": "d"}}}
	is := version.Digests{Layouts: map[string]string{"v1": "a", "v2": "x"}, Renders: map[string]map[string]string{"v0.1.0": {"one": "c"}, "v0.2.0": {"one": "e"}}}
	if got := strings.Join(differences(was, is), ", "); got != "layout v2, what v0.1.0 makes of fixture gone, what v0.2.0 makes of fixture one" {
		t.Errorf("they differ in %s", got)
	}
	if got := differences(was, was); len(got) > 0 {
		t.Errorf("digests differ from themselves in %v", got)
	}
}
