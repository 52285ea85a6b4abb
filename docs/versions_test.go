package docs

import (
	"os"
	"regexp"
	"testing"

	"github.com/clusterregistry/operator/operator/version"
)

// read returns what a file says.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestReferences expects that whoever copies a URL of a base gets the version of the
// operator that the manifests install: all pages name the same.
func TestReferences(t *testing.T) {
	tag := regexp.MustCompile(`newTag: (\S+)`).FindStringSubmatch(read(t, "../manifests/operator/kustomization.yaml"))
	if tag == nil {
		t.Fatal("manifests/operator names no version")
	}
	found := 0
	for _, document := range pages(t) {
		for _, match := range regexp.MustCompile(`\?ref=(\S+)`).FindAllStringSubmatch(read(t, document), -1) {
			found++
			if match[1] != tag[1] {
				t.Errorf("%s names %s, and the manifests install %s", document, match[1], tag[1])
			}
		}
	}
	if found == 0 {
		t.Error("no page names a base by URL any more")
	}
}

// TestUpgradeExample expects that the command at the top of the guide leads to a
// release that is an upgrade for somebody, and no downgrade for anybody.
func TestUpgradeExample(t *testing.T) {
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	newest := releases[len(releases)-1]
	match := regexp.MustCompile(`"version":"(v[^"]+)"`).FindStringSubmatch(read(t, "how-to/upgrade-a-registry.md"))
	if match == nil || match[1] != newest.Version || len(newest.UpgradesFrom) == 0 {
		t.Errorf("the guide upgrades to %v, and the newest release is %s, from %v", match, newest.Version, newest.UpgradesFrom)
	}
}
