package promtool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// servedFile is the variable that names the file with what real programs served of themselves, a
// list of exposition in JSON: e2e/integration writes it.
const servedFile = "SERVED_METRICS"

// exposition is what a target served, each minute once.
type exposition struct {
	// Labels are those that a scraper adds. With HonorLabels, what the target says has precedence.
	Labels      map[string]string `json:"labels"`
	HonorLabels bool              `json:"honorLabels"`
	Texts       []string          `json:"texts"`
}

// states are the labels that say what happens to be so. Queries that look for an accident find
// nothing where there is none, and are asked without.
var states = map[string][]string{
	"clusterregistry_condition":                               []string{"status", "reason"},
	"clusterregistry_operation_phase_start_timestamp_seconds": []string{"type"},
	"apiserver_request_total":                                 []string{"code"},
}

// moment is when what was served last was.
var moment = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// sample is a chunks.Sample of a number.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                    { return s.at }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.value }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

// memory has series, as Prometheus stores them after it has scraped.
type memory []storage.Series

// remember parses expositions as Prometheus does.
func remember(served []exposition) (memory, error) {
	samples, sets := map[string][]chunks.Sample{}, map[string]labels.Labels{}
	for _, target := range served {
		for i, text := range target.Texts {
			at := moment.Add(time.Duration(i-len(target.Texts)+1) * time.Minute).UnixMilli()
			p := textparse.NewPromParser([]byte(text), labels.NewSymbolTable(), false)
			for {
				entry, err := p.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return nil, fmt.Errorf("%v: %w", target.Labels, err)
				}
				if entry != textparse.EntrySeries {
					continue
				}
				_, _, value := p.Series()
				var own labels.Labels
				p.Labels(&own)
				set := scraped(own, target)
				key := set.String()
				samples[key], sets[key] = append(samples[key], sample{at, value}), set
			}
		}
	}
	var out memory
	for _, key := range slices.Sorted(maps.Keys(samples)) {
		out = append(out, storage.NewListSeries(sets[key], samples[key]))
	}
	return out, nil
}

// scraped returns the labels that a scraper gives a series.
func scraped(own labels.Labels, target exposition) labels.Labels {
	b := labels.NewBuilder(own)
	for name, value := range target.Labels {
		if theirs := own.Get(name); theirs != "" {
			if target.HonorLabels {
				continue
			}
			b.Set(model.ExportedLabelPrefix+name, theirs)
		}
		b.Set(name, value)
	}
	return b.Labels()
}

// Querier implements storage.Queryable.
func (m memory) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &found{}
		for _, series := range m {
			if !slices.ContainsFunc(matchers, func(by *labels.Matcher) bool { return !by.Matches(series.Labels().Get(by.Name)) }) {
				found.left = append(found.left, series)
			}
		}
		return found
	}}, nil
}

// found is a storage.SeriesSet.
type found struct {
	left []storage.Series
	at   storage.Series
}

func (f *found) Next() bool {
	if len(f.left) == 0 {
		return false
	}
	f.at, f.left = f.left[0], f.left[1:]
	return true
}

func (f *found) At() storage.Series                { return f.at }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

// unanswered returns the queries to which there is no answer, and the selectors in them that select
// nothing, by where they are.
func unanswered(ctx context.Context, m memory, asked map[string]string) (map[string]string, error) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	out := map[string]string{}
	for where, query := range asked {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		every := []string{}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if selector, is := node.(*parser.VectorSelector); is {
				settle(selector)
				every = append(every, selector.String())
			}
			return nil
		})
		for _, one := range append(every, uneventful(expr).String()) {
			q, err := engine.NewInstantQuery(ctx, m, nil, one, moment)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", where, one, err)
			}
			result := q.Exec(ctx)
			if answer, err := result.Vector(); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", where, one, err)
			} else if len(answer) == 0 {
				out[where] += "\n  " + one
			}
			q.Close()
		}
	}
	return out, nil
}

// settle removes from a selector what selects by a state.
func settle(selector *parser.VectorSelector) {
	selector.LabelMatchers = slices.DeleteFunc(selector.LabelMatchers, func(by *labels.Matcher) bool {
		return slices.Contains(states[selector.Name], by.Name)
	})
}

// uneventful returns an expression without what makes it empty while all is well: comparisons
// return whether they hold, and nothing is excluded.
func uneventful(expr parser.Expr) parser.Expr {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		e.Expr = uneventful(e.Expr)
	case *parser.AggregateExpr:
		e.Expr = uneventful(e.Expr)
	case *parser.UnaryExpr:
		e.Expr = uneventful(e.Expr)
	case *parser.Call:
		if e.Func.Name == "absent" {
			return uneventful(e.Args[0])
		}
		for i := range e.Args {
			e.Args[i] = uneventful(e.Args[i])
		}
	case *parser.BinaryExpr:
		e.LHS, e.RHS = uneventful(e.LHS), uneventful(e.RHS)
		e.ReturnBool = e.ReturnBool || e.Op.IsComparisonOperator()
		if e.Op == parser.LUNLESS {
			return e.LHS
		}
	}
	return expr
}

// TestServed asks every query of the dashboard and the alerts of what real programs have served.
func TestServed(t *testing.T) {
	file := os.Getenv(servedFile)
	if file == "" {
		t.Skipf("%s is not set", servedFile)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var served []exposition
	if err := json.Unmarshal(content, &served); err != nil {
		t.Fatal(err)
	}
	m, err := remember(served)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for where, query := range queries(t) {
		all[where] = strings.NewReplacer("$namespace", ".+", "$name", ".+").Replace(query)
	}
	none, err := unanswered(t.Context(), m, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range slices.Sorted(maps.Keys(none)) {
		t.Errorf("%s: these have no answer:%s", where, none[where])
	}
	t.Logf("%d queries were asked of %d series", len(all), len(m))
}

// TestUnanswered expects that a query is answered although all is well, and that a mistake in it
// is found.
func TestUnanswered(t *testing.T) {
	m, err := remember([]exposition{
		{Labels: map[string]string{"namespace": "system", "pod": "operator-0"}, HonorLabels: true, Texts: []string{"a{namespace=\"team\",name=\"fleet\"} 1\nseen_total 1\n", "a{namespace=\"team\",name=\"fleet\"} 2\nseen_total 7\n"}},
		{Labels: map[string]string{"namespace": "team", "service": "fleet-server"}, Texts: []string{"# TYPE b gauge\nb{namespace=\"other\"} 3\n"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		`max by (namespace, name) (a) > 5`:       "",
		`absent(a)`:                              "",
		`rate(seen_total{pod="operator-0"}[5m])`: "",
		`a * on (namespace) b == 0`:              "",
		`a unless on (namespace) b`:              "",
		`label_replace(b, "name", "$1", "service", "(.+)-server") / on (namespace) a`: "",
		`b{exported_namespace="other"}`:                                               "",
		`max(aa) > 5`:                                                                 "\n  aa\n  max(aa) > bool 5",
		`a unless c`:                                                                  "\n  c",
		`a or d`:                                                                      "\n  d",
		`a and on (name) b`:                                                           "\n  a and on (name) b",
		`a{namespace="system"}`:                                                       "\n  a{namespace=\"system\"}\n  a{namespace=\"system\"}",
		`rate(a{name="other"}[5m])`:                                                   "\n  a{name=\"other\"}\n  rate(a{name=\"other\"}[5m])",
	} {
		got, err := unanswered(t.Context(), m, map[string]string{"query": query})
		if err != nil || got["query"] != want {
			t.Errorf("of %s, these have no answer: %q, want %q (%v)", query, got["query"], want, err)
		}
	}
}
