package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCapabilityLevel holds the list of what proves the bundle's capability level to tests that
// exist, and the level to the list: as long as a line is open, the bundle does not claim it.
func TestCapabilityLevel(t *testing.T) {
	page := read(t, "testdata/capability-level.txt")
	all := existing(t)
	found, open := 0, false
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(line, "|---") || strings.Contains(line, "proved by") {
			continue
		}
		proof := cells[3]
		if strings.HasPrefix(strings.TrimSpace(proof), "**open**") {
			open = true
			continue
		}
		dir := ""
		for _, word := range regexp.MustCompile("`[a-z0-9/]+`|Test[A-Za-z]+").FindAllString(proof, -1) {
			if strings.HasPrefix(word, "`") {
				dir = strings.Trim(word, "`")
				continue
			}
			if found++; !slices.Contains(all[word], dir) {
				t.Errorf("%s has no %s, which is to prove: %s", dir, word, strings.TrimSpace(cells[1]))
			}
		}
	}
	if found < 20 {
		t.Errorf("the list names %d tests", found)
	}
	if claims := strings.Contains(read(t, "../manifests/olm/clusterserviceversion.yaml"), "capabilities: Full Lifecycle"); claims == open {
		t.Errorf("the bundle claims Full Lifecycle: %t, and a line of the list is open: %t", claims, open)
	}
}
