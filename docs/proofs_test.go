package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	named    = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)")
	// placed are names before the directory of their package, as in "`TestA`, `TestB` (docs)".
	placed = regexp.MustCompile("((?:`(?:Test|Fuzz)[A-Z][\\w/]*`,? )+)\\(([a-z][a-z0-9/]+)\\)")
)

// existing returns the directories of all tests of the repository, by name.
func existing(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != ".." && (name[0] == '.' || name == "node_modules" || name == "bin") {
			return fs.SkipDir
		}
		if matched, _ := filepath.Match("*_test.go", entry.Name()); !matched {
			return nil
		}
		content, err := os.ReadFile(path)
		dir := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../"))
		for _, match := range function.FindAllStringSubmatch(string(content), -1) {
			out[match[1]] = append(out[match[1]], dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNamedTests expects that a test that a page calls a proof exists, and in the package that the
// page names.
func TestNamedTests(t *testing.T) {
	all, found, places := existing(t), 0, 0
	for _, document := range pages(t) {
		for _, match := range named.FindAllStringSubmatch(read(t, document), -1) {
			found++
			if all[match[1]] == nil {
				t.Errorf("%s names %s, and there is no such test", document, match[1])
			}
		}
		for _, match := range placed.FindAllStringSubmatch(read(t, document), -1) {
			for _, name := range named.FindAllStringSubmatch(match[1], -1) {
				places++
				if in := all[name[1]]; !slices.Contains(in, match[2]) {
					t.Errorf("%s has %s in %s, and it is in %s", document, name[1], match[2], in)
				}
			}
		}
	}
	if found == 0 || places == 0 {
		t.Error("no page names a test any more, or none its package")
	}
}
