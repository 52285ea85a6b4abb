package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// Sections of docs/reference/metrics.md.
const (
	operator   = "The operator"
	servers    = "The servers"
	onOccasion = "On occasion"
	etcd       = "etcd"
	// controllers are compared with the code by "make verify-alerts".
	controllers = "Controllers"
)

// metric is what docs/reference/metrics.md promises of one.
type metric struct {
	kind   string
	labels []string
}

// documented returns the metrics of docs/reference/metrics.md by section and name.
func documented(t *testing.T) map[string]map[string]metric {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(framework.Root(t), "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	var (
		row   = regexp.MustCompile("^\\| `([a-z_]+)` \\| (gauge|counter|histogram) \\|([^|]*)\\|")
		label = regexp.MustCompile("`([a-z_]+)`")
	)
	out := map[string]map[string]metric{operator: {}, servers: {}, onOccasion: {}, etcd: {}, controllers: {}}
	section := ""
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "##") {
			section = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
		found := row.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		if out[section] == nil {
			t.Fatalf("docs/reference/metrics.md has metrics in the section %q, where nobody looks for them", section)
		}
		one := metric{kind: found[2]}
		for _, name := range label.FindAllStringSubmatch(found[3], -1) {
			one.labels = append(one.labels, name[1])
		}
		slices.Sort(one.labels)
		out[section][found[1]] = one
	}
	for section, metrics := range out {
		if len(metrics) == 0 {
			t.Fatalf("docs/reference/metrics.md has no metrics in the section %q", section)
		}
	}
	return out
}
