package docs

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestIndexes expects that the index of each directory links to all pages in it,
// and the entry page to each index.
func TestIndexes(t *testing.T) {
	for _, page := range pages(t) {
		dir, name := filepath.Split(page)
		index, target := dir+"README.md", name
		if name == "README.md" {
			index, target = "README.md", page
		}
		if page == "README.md" {
			continue
		}
		if !strings.Contains(read(t, index), "]("+target+")") {
			t.Errorf("%s has no link to %s", index, target)
		}
	}
}
