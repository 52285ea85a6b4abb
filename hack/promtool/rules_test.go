package promtool

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

const (
	// root is the repository's.
	root = "../.."
	// runbooks is where alerts say what to do.
	runbooks = "https://github.com/clusterregistry/operator/blob/main/docs/reference/alerts.md"
)

// read returns the content of a file of the repository.
func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// decode reads a manifest, in which no field may be one that its kind lacks.
func decode[T any](t *testing.T, file string) *T {
	t.Helper()
	into := new(T)
	if err := yaml.UnmarshalStrict(read(t, "manifests/monitoring/"+file), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return into
}

// alerts returns all of them.
func alerts(t *testing.T) []monitoringv1.Rule {
	t.Helper()
	var all []monitoringv1.Rule
	for _, group := range decode[monitoringv1.PrometheusRule](t, "prometheusrule.yaml").Spec.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no alerts")
	}
	return all
}

// TestPromtool has promtool check the rules, try them on the series in testdata,
// and check the configuration in docs/reference/metrics.md.
func TestPromtool(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("there is nothing to try the alerts on: %v", err)
	}
	spec, err := yaml.Marshal(decode[monitoringv1.PrometheusRule](t, "prometheusrule.yaml").Spec)
	if err != nil {
		t.Fatal(err)
	}
	configs := examples(t, "scrape_configs:")
	if len(configs) != 1 {
		t.Fatalf("docs/reference/metrics.md has %d configurations of Prometheus", len(configs))
	}
	rules, config, promtool := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "prometheus.yaml"), filepath.Join(dir, "promtool")
	if err := errors.Join(os.WriteFile(rules, spec, 0o600), os.WriteFile(config, []byte(configs[0]), 0o600)); err != nil {
		t.Fatal(err)
	}
	// Ways to discover targets are of no use here, and would be most of the build.
	run(t, "go", "build", "-tags=remove_all_sd", "-o", promtool, "github.com/prometheus/prometheus/cmd/promtool")
	run(t, promtool, "check", "rules", "--lint=all", "--lint-fatal", rules)
	run(t, promtool, append([]string{"test", "rules"}, tests...)...)
	run(t, promtool, "check", "config", "--syntax-only", config)
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	t.Logf("%s", out)
}

// examples returns the pieces of YAML in docs/reference/metrics.md that have a text in them.
func examples(t *testing.T, with string) []string {
	t.Helper()
	var found []string
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(read(t, "docs/reference/metrics.md")), -1) {
		if strings.Contains(block[1], with) {
			found = append(found, block[1])
		}
	}
	return found
}

// tried is what a file in testdata says, as far as it matters here.
type tried struct {
	Tests []struct {
		InputSeries []struct {
			Series string `json:"series"`
		} `json:"input_series"`
		AlertRuleTest []struct {
			Alertname string `json:"alertname"`
			ExpAlerts []any  `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

func recorded(t *testing.T) map[string]tried {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]tried{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var one tried
		if err := yaml.Unmarshal(content, &one); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[file] = one
	}
	return all
}

// TestTried fails for an alert that was never seen to fire, or not to.
func TestTried(t *testing.T) {
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, file := range recorded(t) {
		for _, test := range file.Tests {
			for _, alert := range test.AlertRuleTest {
				if len(alert.ExpAlerts) > 0 {
					fires[alert.Alertname] = true
				} else {
					rests[alert.Alertname] = true
				}
			}
		}
	}
	for _, alert := range alerts(t) {
		if !fires[alert.Alert] || !rests[alert.Alert] {
			t.Errorf("testdata has %s fire: %t, and not fire: %t", alert.Alert, fires[alert.Alert], rests[alert.Alert])
		}
		delete(fires, alert.Alert)
	}
	for name := range fires {
		t.Errorf("testdata has %s fire, which does not exist", name)
	}
}

// TestRunbooks compares the alerts with the sections of docs/reference/alerts.md and its
// table.
func TestRunbooks(t *testing.T) {
	text := string(read(t, "docs/reference/alerts.md"))
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(text, -1) {
		sections[heading[1]] = true
	}
	for _, alert := range alerts(t) {
		anchor := strings.ToLower(alert.Alert)
		if !sections[alert.Alert] {
			t.Errorf("docs/reference/alerts.md has no section for %s", alert.Alert)
		}
		delete(sections, alert.Alert)
		if want := runbooks + "#" + anchor; alert.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %s, not to %s", alert.Alert, alert.Annotations["runbook_url"], want)
		}
		if alert.For == nil || alert.Labels["severity"] == "" {
			t.Fatalf("%s lacks for, or a severity", alert.Alert)
		}
		after := strings.TrimSuffix(string(*alert.For), "m") + " minutes"
		if after == "1 minutes" {
			after = "1 minute"
		}
		if row := "| [" + alert.Alert + "](#" + anchor + ") | " + alert.Labels["severity"] + " | " + after + " |"; !strings.Contains(text, row) {
			t.Errorf("the table of docs/reference/alerts.md lacks %s", row)
		}
		if alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" {
			t.Errorf("%s lacks a summary or a description", alert.Alert)
		}
		// What is absent has no name.
		named := strings.Contains(alert.Annotations["description"], "{{ $labels.namespace }}/{{ $labels.name }}")
		if absent := strings.HasPrefix(alert.Expr.String(), "absent("); !named && !absent {
			t.Errorf("%s does not say of which registry it is: %s", alert.Alert, alert.Annotations["description"])
		}
	}
	for left := range sections {
		t.Errorf("docs/reference/alerts.md has a section for %s, which is no alert", left)
	}
}
