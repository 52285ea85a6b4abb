package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// words are those that a reader of the Kubernetes documentation stumbles over, each
// with what to write in its place.
var words = map[string]*regexp.Regexp{
	"someone, anyone, no one":          regexp.MustCompile(`(?i)\b(some|any|no)body\b`),
	"they, them, their":                regexp.MustCompile(`(?i)\b(he|him|his)\b`),
	"continue, keep serving":           regexp.MustCompile(`(?i)\b(go|goes|went) on\b|\bserves? on\b`),
	"directory":                        regexp.MustCompile(`(?i)\bfolders?\b`),
	"report, list, advertise":          regexp.MustCompile(`(?i)\b(tells?|told) of\b`),
	"fix, resolve":                     regexp.MustCompile(`(?i)\bmend(s|ed)?\b`),
	"again, or reissue, recreate":      regexp.MustCompile(`(?i)\banew\b`),
	"up to date, desired":              regexp.MustCompile(`(?i)\b(is|are|as) wanted\b`),
	"block":                            regexp.MustCompile(`(?i)\b(hold|holds|held) up\b`),
	"automatically":                    regexp.MustCompile(`(?i)\bby (itself|themselves)\b`),
	"etcd member":                      regexp.MustCompile(`(?i)\bmembers? of etcd\b`),
	"rollback, previous release":       regexp.MustCompile(`(?i)\bway back\b|\breleases? before\b`),
	"verified":                         regexp.MustCompile(`(?i)\bproven\b`),
	"degraded":                         regexp.MustCompile(`(?i)\bimpaired\b`),
	"license, behavior, honor, color":  regexp.MustCompile(`(?i)\b(licence|behaviour|honour|colour|favour)`),
	"Anyone who can ... (not Who can)": regexp.MustCompile(`(?m)^(- )?Who(ever)? (can|may|has|wants|needs)\b[^?\n]*$`),
}

// pageWords are those that pages avoid in addition: turns of phrase that are not English, or
// longer than they need to be. Texts that are generated from Go comments are exempt.
var pageWords = map[string]*regexp.Regexp{
	"those that ...":                         regexp.MustCompile(`\bby such as\b|\bsuch as (can|trust|write|read|have|are)\b`),
	"for example by, when, ...":              regexp.MustCompile(`\bsuch as (by|when|as|after|where|because|while|if|through|with)\b`),
	"also, as well":                          regexp.MustCompile(`, too[.,;:)]`),
	"until then, during it, in the meantime": regexp.MustCompile(`(?i)\bmeanwhile\b`),
	"also, in addition":                      regexp.MustCompile(`(?i)\bbesides\b`),
	"register a cluster":                     regexp.MustCompile(`(?i)\benter(s|ed|ing)? (the )?(host )?clusters?\b|\benter(s|ed|ing)? (them|it|an entry)\b`),
	"is awaited":                             regexp.MustCompile(`\b(is|are|was|were) waited for\b`),
	"test-restored":                          regexp.MustCompile(`(?i)\bon trial\b`),
	"in progress":                            regexp.MustCompile(`(?i)\bunder way\b`),
	"the progress, the state":                regexp.MustCompile(`\bhow far (it|they|each|that) (is|are|gets|got)\b|\bhow it tells\b`),
	"manage":                                 regexp.MustCompile(`\blook(s|ed|ing)? after\b`),
	"at the latest":                          regexp.MustCompile(`\bat latest\b`),
	"as usual":                               regexp.MustCompile(`\bas (ever|always)\b`),
	"has received":                           regexp.MustCompile(`\bhas got\b`),
	"whether, for ...":                       regexp.MustCompile(`\bbe it\b`),
	"sets, makes, requires":                  regexp.MustCompile(`\bhas it be\b|\bhave it be\b`),
	"irreversible":                           regexp.MustCompile(`(?i)\bcan't be taken back\b`),
	"keeps it running, keeps it":             regexp.MustCompile(`\bkeeps? (it|them) so\b`),
	"is counted, is not lost":                regexp.MustCompile(`\bcounts? as there\b`),
	"is your decision":                       regexp.MustCompile(`\b(is|are) for a person to\b`),
	"for callers who may not":                regexp.MustCompile(`\bto who may\b`),
	"authenticates, its CA":                  regexp.MustCompile(`(?i)\bvouch(es)?\b|\bwhom to trust\b`),
	"one or the other":                       regexp.MustCompile(`\bthe one or the other\b`),
	"forever":                                regexp.MustCompile(`\bfor ever\b`),
	"anyone who":                             regexp.MustCompile(`(?i)\bwhoever\b`),
}

// generated are the pages whose texts are those of fields and flags.
var generated = []string{"reference/clusterregistry.md", "reference/clusterregistrybackup.md", "reference/cluster.md", "reference/clusterset.md", "reference/flags.md"}

var code = regexp.MustCompile("`[^`\n]*`")

// TestWords looks for such words where users read: in the pages, in what "kubectl
// explain" shows, and in alerts. A "make verify" fails by it, as by any unit test.
func TestWords(t *testing.T) {
	texts := map[string]string{}
	for _, path := range append(pages(t), "../README.md", "../CONTRIBUTING.md", "../RELEASE.md", "../SECURITY.md", "../GOVERNANCE.md", "../MAINTAINERS.md", "../CODE_OF_CONDUCT.md", "../hack/cluster/README.md") {
		texts[path] = code.ReplaceAllString(fenced.ReplaceAllString(read(t, path), ""), "")
	}
	const crd, alerts = "../manifests/operator/crd/operator.clusterregistry.io_clusterregistries.yaml", "../manifests/monitoring/prometheusrule.yaml"
	for _, path := range []string{crd, alerts} {
		var tree any
		if err := yaml.Unmarshal([]byte(read(t, path)), &tree); err != nil {
			t.Fatal(err)
		}
		texts[path] = strings.Join(prose(tree), "\n")
		if len(texts[path]) < 1000 {
			t.Errorf("%s has no prose: %q", path, texts[path])
		}
	}
	for path, text := range texts {
		avoid := []map[string]*regexp.Regexp{words}
		if filepath.Ext(path) == ".md" && !slices.Contains(generated, path) {
			avoid = append(avoid, pageWords)
		}
		for _, list := range avoid {
			for write, pattern := range list {
				for _, found := range pattern.FindAllStringIndex(text, -1) {
					context := text[max(0, found[0]-40):min(len(text), found[1]+40)]
					t.Errorf("%s: ...%s...: write %q in place of %q", path, strings.ReplaceAll(context, "\n", " "), write, text[found[0]:found[1]])
				}
			}
		}
	}
}

// prose returns what people read of a manifest: descriptions, summaries and messages.
func prose(tree any) []string {
	var out []string
	switch node := tree.(type) {
	case []any:
		for _, value := range node {
			out = append(out, prose(value)...)
		}
	case map[string]any:
		for key, value := range node {
			if text, is := value.(string); is && (key == "description" || key == "summary" || key == "message") {
				out = append(out, text)
			} else {
				out = append(out, prose(value)...)
			}
		}
	}
	return out
}
