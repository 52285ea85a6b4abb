package framework

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// busy limits these loads where the computer has no time for them.
const busy = 10

// stored returns what a fake registry holds.
func (f *fakeRegistry) stored() []v1alpha1.Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []v1alpha1.Cluster
	for _, c := range f.clusters {
		out = append(out, *c)
	}
	return out
}

// TestLoad lets a registry without mistakes pass, whose watches end again and
// again and whose clusters others store anew.
func TestLoad(t *testing.T) {
	f := &fakeRegistry{closeAfter: 50}
	load := StartLoad(t, &rest.Config{Host: startFakeRegistry(t, f)}, 200, Watchers(2), Population(5), Rewritten(), Pending(busy))
	load.Settle(t)
	load.Mark("rewritten")
	Eventually(t, "clusters to be changed again after their life, and after somebody else", func(context.Context) error {
		f.rewrite()
		load.mu.Lock()
		defer load.mu.Unlock()
		if load.lives[0].rounds < 2 || load.conflicts < 3 {
			return fmt.Errorf("the first goes through %d more rounds, and %d replacements conflicted", load.lives[0].rounds, load.conflicts)
		}
		return nil
	})
	load.Settle(t)
	report := load.Stop()
	t.Log(report)
	if len(report.Failed) > 0 {
		t.Errorf("%d failed, such as: %s", len(report.Failed), report.Failed[0])
	}
	if err := report.Compare(f.stored()); err != nil {
		t.Error(err)
	}
	if len(report.Phases) != 2 || report.Phases[0].Name != "start" || report.Phases[1].Name != "rewritten" || report.Phases[0].Requests+report.Phases[1].Requests != report.Sent || report.Phases[0].P50 == 0 {
		t.Errorf("the phases are %+v of %d requests", report.Phases, report.Sent)
	}
	stay := 0
	for _, life := range report.Lives {
		if life.stays {
			stay++
		}
	}
	if stay != 5 {
		t.Errorf("%d clusters stay", stay)
	}
	for i, w := range report.Watches {
		if w.Resumed == 0 || w.Events <= load.Acknowledged() {
			t.Errorf("watch %d was told of %d changes, of %d and those of others, and resumed %d times", i, w.Events, load.Acknowledged(), w.Resumed)
		}
	}
}

// TestLoadWithoutRewrites keeps to what it is told: a conflict is a failure.
func TestLoadWithoutRewrites(t *testing.T) {
	f := &fakeRegistry{}
	load := StartLoad(t, &rest.Config{Host: startFakeRegistry(t, f)}, 50, Pending(busy))
	load.Settle(t)
	Eventually(t, "a request to fail", func(context.Context) error {
		f.rewrite()
		load.mu.Lock()
		defer load.mu.Unlock()
		if len(load.failed) == 0 {
			return errors.New("none does")
		}
		return nil
	})
	if report := load.Stop(); report.Phases[0].Failed != len(report.Failed) {
		t.Errorf("%d failures and the phases %+v", len(report.Failed), report.Phases)
	}
}

// TestLoadIsHeld answers nothing for a while: no more than the limit is sent, and
// afterwards all goes on.
func TestLoadIsHeld(t *testing.T) {
	f := &fakeRegistry{stalled: make(chan struct{})}
	load := StartLoad(t, &rest.Config{Host: startFakeRegistry(t, f)}, 200, Pending(7))
	Eventually(t, "the load to be held for a while", func(context.Context) error {
		load.mu.Lock()
		defer load.mu.Unlock()
		if load.sent != 7 || time.Since(load.start) < time.Second {
			return fmt.Errorf("%d are sent", load.sent)
		}
		return nil
	})
	close(f.stalled)
	load.Settle(t)
	report := load.Stop()
	if len(report.Failed) > 0 || report.Held == 0 {
		t.Errorf("failed %v, held for %s", report.Failed, report.Held)
	}
	if late := report.Rate; late > 200 {
		t.Errorf("the load made up for what it had not sent: %.1f/s", late)
	}
}

// TestLoadNotices has the registry make each mistake that a load is there to
// notice, and expects it in the report.
func TestLoadNotices(t *testing.T) {
	created := func(e fakeEvent) bool { return e.name == "load-0" && e.Type == watch.Added }
	for _, test := range []struct {
		reason string
		tell   func(fakeEvent) []fakeEvent
		want   string
	}{
		{"an event is omitted", func(e fakeEvent) []fakeEvent {
			if created(e) {
				return nil
			}
			return []fakeEvent{e}
		}, "watch 0: load-0: it missed ADDED"},
		{"an event is told twice", func(e fakeEvent) []fakeEvent {
			if created(e) {
				return []fakeEvent{e, e}
			}
			return []fakeEvent{e}
		}, "watch 0: load-0: it told of ADDED in version 101 after version 101"},
		{"an event is told late", swapFirst(), "watch 0: load-0: it told of ADDED in version 101 after version"},
		{"an event is told of a cluster that is not there", func(e fakeEvent) []fakeEvent {
			if created(e) {
				stranger := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "stranger", ResourceVersion: "101"}}
				return []fakeEvent{e, {Type: watch.Added, Object: stranger}}
			}
			return []fakeEvent{e}
		}, "watch 0: it told of 1 changes of stranger, which nobody wrote"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			f := &fakeRegistry{tell: test.tell}
			load := StartLoad(t, &rest.Config{Host: startFakeRegistry(t, f)}, 50, Watchers(1), Pending(1)) // one after another, so that load-0 is the first to be stored
			load.Settle(t)
			report := load.Stop()
			if len(report.Failed) > 0 {
				t.Errorf("requests failed: %v", report.Failed)
			}
			if err := report.Compare(f.stored()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the report is: %v; want %q", err, test.want)
			}
		})
	}
}

// swapFirst tells the first event of a cluster after its second.
func swapFirst() func(fakeEvent) []fakeEvent {
	var held *fakeEvent
	return func(e fakeEvent) []fakeEvent {
		switch {
		case e.name == "load-0" && e.Type == watch.Added:
			held = &e
			return nil
		case e.name == "load-0" && held != nil:
			late := *held
			held = nil
			return []fakeEvent{e, late}
		}
		return []fakeEvent{e}
	}
}

// TestWatchResumes looks at where watches go on.
func TestWatchResumes(t *testing.T) {
	bookmark := fakeEvent{Type: watch.Bookmark, Object: &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "500"}}}
	anError := func(code int32) fakeEvent {
		return fakeEvent{Type: watch.Error, Object: metav1.Status{Code: code, Message: "told so"}}
	}
	once := func(event fakeEvent) func(fakeEvent) []fakeEvent {
		done := false
		return func(e fakeEvent) []fakeEvent {
			if done {
				return []fakeEvent{e}
			}
			done = true
			return []fakeEvent{event}
		}
	}
	for _, test := range []struct {
		reason string
		tell   func(fakeEvent) []fakeEvent
		oldest uint64
		// begun are the versions of the first watches.
		begun, failed string
		listed        int
	}{
		{reason: "after an event", begun: "[100 101]"},
		{reason: "after a bookmark", tell: once(bookmark), begun: "[100 500]"},
		{reason: "after an error that does not say that it is too late", tell: once(anError(http.StatusInternalServerError)), begun: "[100 100]", failed: "w, from version 100: status 500: told so"},
		{reason: "after a list, when it is too late", oldest: 101, begun: "[100 101]", listed: 1},
		{reason: "after a list, when it became too late", tell: once(anError(http.StatusGone)), begun: "[100 101]", listed: 1},
	} {
		t.Run(test.reason, func(t *testing.T) {
			f := &fakeRegistry{tell: test.tell, oldest: test.oldest, closeAfter: 1}
			failed := make(chan error, 100)
			w := newWatcher("w", startFakeRegistry(t, f), http.DefaultTransport, func(err error) { failed <- err })
			if err := w.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			f.store(watch.Added, &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
			f.mu.Unlock()
			go w.follow(t.Context())
			Eventually(t, "watches to begin", func(context.Context) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				n := min(len(f.watches), strings.Count(test.begun, " ")+1)
				if got := fmt.Sprint(f.watches[:n]); got != test.begun {
					return fmt.Errorf("they began at %s, want %s", got, test.begun)
				}
				return nil
			})
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.gaps) != test.listed || test.listed > 0 && fmt.Sprint(w.told) != "[{a {LISTED 101}}]" {
				t.Errorf("it has listed %d times, want %d, and was told %v", len(w.gaps), test.listed, w.told)
			}
			if test.failed == "" {
				if len(failed) > 0 {
					t.Errorf("it fails: %v", <-failed)
				}
				return
			}
			if err := <-failed; err.Error() != test.failed {
				t.Errorf("the failure is: %v; want %s", err, test.failed)
			}
		})
	}
}
