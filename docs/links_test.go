// Package docs holds the guides. Its test follows their links.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	dropped = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// anchors returns what the headings of a document can be linked by, as GitHub
// makes it.
func anchors(content string) map[string]bool {
	out := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(content, ""), -1) {
		text := strings.ToLower(dropped.ReplaceAllString(strings.TrimSpace(match[1]), ""))
		out[strings.ReplaceAll(text, " ", "-")] = true
	}
	return out
}

// pages returns the paths of all pages in this directory and those below.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			out = append(out, path)
		}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("there are no pages: %v", err)
	}
	return out
}

// TestLinks expects that every link to a file of this repository, and to a heading
// in one, leads somewhere.
func TestLinks(t *testing.T) {
	documents := append(pages(t), "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md", "../RELEASE.md", "../SECURITY.md", "../GOVERNANCE.md", "../MAINTAINERS.md", "../CODE_OF_CONDUCT.md", "../hack/cluster/README.md")
	links := 0
	for _, document := range documents {
		content, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(content), ""), -1) {
			target := match[1]
			if strings.Contains(target, "://") {
				continue
			}
			links++
			if label := strings.Trim(match[0][1:strings.Index(match[0], "](")], "`"); strings.HasSuffix(label, ".md") && !strings.Contains(label, " ") && !strings.HasSuffix(strings.Split(target, "#")[0], label) {
				t.Errorf("%s has a link to %s that says %s", document, target, label)
			}
			path, anchor, hasAnchor := strings.Cut(target, "#")
			file := filepath.Join(filepath.Dir(document), path)
			if path == "" {
				file = document
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s, which is not there", document, target)
				continue
			}
			if !hasAnchor {
				continue
			}
			there, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !anchors(string(there))[anchor] {
				t.Errorf("%s links to %s, and there is no such heading", document, target)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}
