package history

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestRecorder has clients use a registry that is well, and some that are not, and expects
// what they record to say so.
func TestRecorder(t *testing.T) {
	for name, test := range map[string]struct {
		breaks func(*fake)
		rule   Rule
		fails  bool
	}{
		"well":                                 {breaks: func(*fake) {}},
		"answers are lost, and writes are not": {breaks: func(f *fake) { f.unsure = true }, fails: true},
		"acknowledged writes are lost":         {breaks: func(f *fake) { f.lose = true }, rule: Linearizable},
		"reads are stale":                      {breaks: func(f *fake) { f.stale = true }, rule: Linearizable},
		"watches are not told":                 {breaks: func(f *fake) { f.silent = true }, rule: Lost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := newFake()
			test.breaks(registry)
			server := httptest.NewServer(registry)
			defer server.Close()
			r, err := Start(t.Context(), &http.Transport{}, server.URL, "test", Options{Rate: 400, Clients: 10, Watchers: 2, Timeout: time.Minute, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			const enough = 400
			framework.Eventually(t, "writes, and each kind of operation", func(context.Context) error {
				if n := r.Acknowledged(); n < enough {
					return fmt.Errorf("%d of %d were acknowledged", n, enough)
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				return complete(r.operations)
			})
			h, figures, err := r.Stop(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if figures.Requests < figures.Writes || figures.Writes < enough || (len(figures.Failures) > 0) != test.fails {
				t.Errorf("%s", figures)
			}
			if err := complete(h.Operations); err != nil {
				t.Error(err)
			}
			problems := Check(h)
			if test.rule == "" && len(problems) > 0 || test.rule != "" && Count(problems, test.rule) == 0 {
				t.Errorf("%d operations, %d problems, and expected is %q:\n%s", len(h.Operations), len(problems), test.rule, Summary(problems))
			}
		})
	}
}

// complete returns an error unless there is each kind of operation with the results that a
// registry gives it sooner or later. Which come when is chance.
func complete(operations []Operation) error {
	kinds := map[string]int{}
	for _, o := range operations {
		kinds[fmt.Sprintf("%s %s", o.Kind, o.Result)]++
	}
	for _, want := range []string{"create done", "create taken", "replace done", "append done", "delete done", "get done", "list done"} {
		if kinds[want] == 0 {
			return fmt.Errorf("nothing recorded is %s: %v", want, kinds)
		}
	}
	return nil
}

func TestFigures(t *testing.T) {
	if got := stall([]time.Duration{9, 1, 3, 4}); got != 5 {
		t.Errorf("the longest time between answers at 1, 3, 4 and 9 is 5, not %d", got)
	}
	f := Figures{Failures: []Failure{{At: 5}, {At: 2}}}
	if f.Over() != 5 || len(f.Since(3)) != 1 {
		t.Errorf("the last failure was at %d, and since 3 there were %v", f.Over(), f.Since(3))
	}
}
