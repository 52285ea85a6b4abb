package promtool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// target are the labels that a scraper adds, and those of parts of a histogram.
var target = []string{"namespace", "service", "job", "pod", "app_kubernetes_io_instance", model.MetricNameLabel, model.BucketLabel}

// dashboard is what manifests/monitoring/dashboard.json says, as far as it
// matters here.
type dashboard struct {
	UID        string  `json:"uid"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Query any    `json:"query"`
			Type  string `json:"type"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int    `json:"id"`
	Title, Type string `json:",omitempty"`
	GridPos     struct{ H, W, X, Y int }
	Datasource  struct{ UID string }
	Targets     []struct{ RefID, Expr string }
}

func load(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, "manifests/monitoring/dashboard.json"), &d); err != nil {
		t.Fatalf("dashboard.json: %v", err)
	}
	if len(d.Panels) == 0 {
		t.Fatal("dashboard.json has no panels")
	}
	return d
}

// queries returns all of the dashboard and the alerts, by where they are.
func queries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, alert := range alerts(t) {
		all["alert "+alert.Alert] = alert.Expr.String()
	}
	d := load(t)
	for _, p := range d.Panels {
		for _, query := range p.Targets {
			// The only variable that is not in a text.
			all[fmt.Sprintf("panel %q %s", p.Title, query.RefID)] = strings.ReplaceAll(query.Expr, "$__rate_interval", "5m")
		}
	}
	values := regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`)
	for _, variable := range d.Templating.List {
		if variable.Type != "query" {
			continue
		}
		text, _ := variable.Query.(string)
		found := values.FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("variable %s is %v, which this test can't read", variable.Name, variable.Query)
		}
		all["variable "+variable.Name] = fmt.Sprintf("max by (%s) (%s)", found[2], found[1])
	}
	return all
}

// TestQueries parses every query and looks each of its metrics, and their labels,
// up in docs/reference/metrics.md. TestServed asks them of what programs have served.
func TestQueries(t *testing.T) {
	known := documented(t)
	for where, query := range queries(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		used := 0
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			switch node := node.(type) {
			case *parser.VectorSelector:
				used++
				var names []string
				for _, matcher := range node.LabelMatchers {
					names = append(names, matcher.Name)
				}
				check(t, where, known, node.Name, names)
			case *parser.AggregateExpr:
				grouped(t, where, known, node.Expr, node.Grouping)
			case *parser.BinaryExpr:
				if node.VectorMatching != nil {
					grouped(t, where, known, node, append(slices.Clone(node.VectorMatching.MatchingLabels), node.VectorMatching.Include...))
				}
			}
			return nil
		})
		if used == 0 {
			t.Errorf("%s asks for no metric: %s", where, query)
		}
	}
}

// grouped checks that all metrics in an expression have the labels that it is
// grouped or matched by.
func grouped(t *testing.T, where string, known map[string]metric, expr parser.Expr, names []string) {
	t.Helper()
	made := replaced(expr)
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(made, name) })
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, is := node.(*parser.VectorSelector); is {
			check(t, where, known, selector.Name, names)
		}
		return nil
	})
}

// replaced returns the labels that an expression itself makes.
func replaced(expr parser.Expr) []string {
	var out []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if call, is := node.(*parser.Call); is && call.Func.Name == "label_replace" {
			if label, is := call.Args[1].(*parser.StringLiteral); is {
				out = append(out, label.Val)
			}
		}
		return nil
	})
	return out
}

// check looks a metric, or a part of a histogram, and labels of it up.
func check(t *testing.T, where string, known map[string]metric, name string, names []string) {
	t.Helper()
	one, is := known[name]
	if part := regexp.MustCompile(`_(bucket|sum|count)$`); !is && part.MatchString(name) {
		one, is = known[part.ReplaceAllString(name, "")]
		is = is && one.kind == "histogram"
	} else if is && one.kind == "histogram" {
		t.Errorf("%s: %s is a histogram: ask for a part of it", where, name)
	}
	if !is || one.occasional {
		t.Errorf("%s: %s is not among what docs/reference/metrics.md says is always there", where, name)
		return
	}
	for _, name := range names {
		if !slices.Contains(one.labels, name) && !slices.Contains(target, name) {
			t.Errorf("%s: docs/reference/metrics.md knows of no label %s there", where, name)
		}
	}
}

// TestRecorded fails when a series that alerts are tried on is not one that the
// operator exposes: it has other labels.
func TestRecorded(t *testing.T) {
	known := documented(t)
	for file, content := range recorded(t) {
		for _, test := range content.Tests {
			for _, input := range test.InputSeries {
				series, err := parser.NewParser(parser.Options{}).ParseMetric(input.Series)
				if err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				one, is := known[series.Get(model.MetricNameLabel)]
				if !is {
					t.Errorf("%s: docs/reference/metrics.md does not have %s", file, input.Series)
					continue
				}
				// An empty one counts, but the parser drops it.
				for _, name := range one.labels {
					if !regexp.MustCompile(`[{,]` + name + `="`).MatchString(input.Series) {
						t.Errorf("%s: %s lacks the label %s", file, input.Series, name)
					}
				}
				series.Range(func(l labels.Label) {
					if l.Name != model.MetricNameLabel && !slices.Contains(target, l.Name) && !slices.Contains(one.labels, l.Name) {
						t.Errorf("%s: %s has no label %s", file, input.Series, l.Name)
					}
				})
			}
		}
	}
}

// TestDashboard looks for what Grafana would show wrong, or not at all.
func TestDashboard(t *testing.T) {
	d := load(t)
	if d.UID == "" {
		t.Error("without a uid, every import makes another dashboard")
	}
	ids, cells := map[int]string{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if other, taken := ids[p.ID]; taken {
			t.Errorf("panels %q and %q have the same id", other, p.Title)
		}
		ids[p.ID] = p.Title
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, taken := cells[[2]int{x, y}]; taken {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				if x >= 24 {
					t.Fatalf("panel %q is wider than the screen", p.Title)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q does not ask the data source that was chosen: %+v", p.Title, p)
		}
	}
}

// TestScraping reads how the operator is scraped, and the examples in
// docs/reference/metrics.md of how all else is.
func TestScraping(t *testing.T) {
	monitor := decode[monitoringv1.ServiceMonitor](t, "servicemonitor.yaml")
	if len(monitor.Spec.Endpoints) != 1 || !monitor.Spec.Endpoints[0].HonorLabels {
		t.Error("without honorLabels, the namespace of every metric is the operator's")
	}
	sendsToken(t, "the operator's ServiceMonitor", monitor.Spec.Endpoints[0].Authorization, "manifests/monitoring/token.yaml")
	scrapesControllers(t)
	for kind, into := range map[string]any{"ServiceMonitor": &monitoringv1.ServiceMonitor{}, "PodMonitor": &monitoringv1.PodMonitor{}} {
		found := examples(t, "kind: "+kind)
		if len(found) != 1 {
			t.Fatalf("docs/reference/metrics.md has %d examples of a %s", len(found), kind)
		}
		if err := yaml.UnmarshalStrict([]byte(found[0]), into); err != nil {
			t.Errorf("the %s in docs/reference/metrics.md: %v", kind, err)
		}
		if example, is := into.(*monitoringv1.ServiceMonitor); is {
			sendsToken(t, "the ServiceMonitor in docs/reference/metrics.md", example.Spec.Endpoints[0].Authorization, "manifests/monitoring/controller/token.yaml")
		}
	}
}

// sendsToken expects that Prometheus sends the token of a Secret in some manifests, and nothing of
// its own, which whoever plays the target would get and some platforms forbid.
func sendsToken(t *testing.T, what string, sent *monitoringv1.SafeAuthorization, manifests string) {
	t.Helper()
	for _, document := range strings.Split(string(read(t, manifests)), "\n---\n") {
		secret := &corev1.Secret{}
		if err := yaml.Unmarshal([]byte(document), secret); err != nil {
			t.Fatalf("%s: %v", manifests, err)
		}
		if secret.Type == corev1.SecretTypeServiceAccountToken && sent != nil && sent.Credentials != nil && sent.Credentials.Name == secret.Name && sent.Credentials.Key == corev1.ServiceAccountTokenKey {
			return
		}
	}
	t.Errorf("%s sends %+v, and not the token of %s", what, sent, manifests)
}

// scrapesControllers expects that the PodMonitor selects what a registry's controller
// is rendered as, sends the token that comes with it, and nothing of Prometheus' own.
func scrapesControllers(t *testing.T) {
	t.Helper()
	monitor := decode[monitoringv1.PodMonitor](t, "controller/podmonitor.yaml")
	deployment := &appsv1.Deployment{}
	const file = "manifests/registry/v1/components/controller/controller.yaml"
	documents := strings.Split(string(read(t, file)), "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(documents[len(documents)-1]), deployment); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	pods := deployment.Spec.Selector.MatchLabels
	for key, value := range monitor.Spec.Selector.MatchLabels {
		if pods[key] != value {
			t.Errorf("the PodMonitor selects %s=%s, and pods of the controller have %q", key, value, pods[key])
		}
	}
	for _, label := range monitor.Spec.PodTargetLabels {
		if pods[label] == "" {
			t.Errorf("pods of the controller have no label %s", label)
		}
	}
	if len(monitor.Spec.PodMetricsEndpoints) != 1 || monitor.Spec.NamespaceSelector.Any || len(monitor.Spec.NamespaceSelector.MatchNames) > 0 {
		t.Fatalf("the PodMonitor is not one for one port of pods in its own namespace: %+v", monitor.Spec)
	}
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	ports := deployment.Spec.Template.Spec.Containers[0].Ports
	if !slices.ContainsFunc(ports, func(port corev1.ContainerPort) bool { return endpoint.Port != nil && port.Name == *endpoint.Port }) {
		t.Errorf("the PodMonitor asks port %v, and the controller has %v", endpoint.Port, ports)
	}
	sendsToken(t, "the PodMonitor", endpoint.Authorization, "manifests/monitoring/controller/token.yaml")
}
