package promtool

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// metric is what docs/reference/metrics.md promises of one.
type metric struct {
	kind   string
	labels []string
	// occasional means that there may be none in a run without incidents.
	occasional bool
}

var (
	heading = regexp.MustCompile(`(?m)^##+ (.+)$`)
	row     = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (gauge|counter|histogram) \\|([^|]*)\\|.*\\|$")
	label   = regexp.MustCompile("`([a-z_]+)`")
)

// documented returns the metrics of docs/reference/metrics.md by name.
func documented(t *testing.T) map[string]metric {
	t.Helper()
	all := map[string]metric{}
	text := string(read(t, "docs/reference/metrics.md"))
	for i, at := range heading.FindAllStringIndex(text, -1) {
		section := text[at[0]:]
		if end := heading.FindAllStringIndex(text, -1); i+1 < len(end) {
			section = text[at[0]:end[i+1][0]]
		}
		for _, found := range row.FindAllStringSubmatch(section, -1) {
			one := metric{kind: found[2], occasional: strings.HasPrefix(section, "### On occasion")}
			for _, name := range label.FindAllStringSubmatch(found[3], -1) {
				one.labels = append(one.labels, name[1])
			}
			if known, is := all[found[1]]; is && (known.kind != one.kind || !slices.Equal(known.labels, one.labels)) {
				t.Errorf("docs/reference/metrics.md contradicts itself about %s", found[1])
			}
			all[found[1]] = one
		}
	}
	if len(all) == 0 {
		t.Fatal("docs/reference/metrics.md has no metrics")
	}
	return all
}

// TestDocumented compares the metrics of our own in docs/reference/metrics.md with those
// that the code registers: texts that begin as they do are nothing else.
func TestDocumented(t *testing.T) {
	own := regexp.MustCompile(`^clusterregistry_[a-z_]+$`)
	undocumented := map[string]bool{}
	for name := range documented(t) {
		if own.MatchString(name) {
			undocumented[name] = false
		}
	}
	found := map[string]bool{}
	for _, dir := range []string{"apiserver", "cli", "controller", "helper", "operator"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				literal, is := node.(*ast.BasicLit)
				if !is || literal.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(literal.Value); err == nil && own.MatchString(text) {
					found[text] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range found {
		if _, is := undocumented[name]; !is {
			t.Errorf("%s is not in docs/reference/metrics.md", name)
		}
	}
	for name := range undocumented {
		if !found[name] {
			t.Errorf("docs/reference/metrics.md has %s, which is not in the code", name)
		}
	}
}
