package framework

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// health is how a fake host is.
type health struct {
	deletions           time.Duration // how long that of a namespace takes
	busy                bool          // it names nothing that blocks them
	creation, discovery error
	takes               time.Duration // how long discovery does
}

// well is a host that has nothing but its usual delay.
var well = health{deletions: 6 * time.Second}

// fakeHost is a host cluster in memory.
type fakeHost struct {
	mu                sync.Mutex
	is                health
	asked             map[string]time.Time
	made, discoveries int
}

// set makes the host as told, for so long.
func (h *fakeHost) set(is health, lasts time.Duration) {
	h.mu.Lock()
	h.is = is
	h.mu.Unlock()
	time.Sleep(lasts)
}

func (h *fakeHost) createNamespace(context.Context) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.is.creation == nil {
		h.made++
	}
	return fmt.Sprintf("probe-%d", h.made), h.is.creation
}

func (h *fakeHost) deleteNamespace(_ context.Context, name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[name] = time.Now()
	return nil
}

func (h *fakeHost) namespaceGone(_ context.Context, name string) (bool, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	why := "discovery failed for clusterregistry.k8s.io/v1alpha1"
	if h.is.busy {
		why = ""
	}
	return time.Since(h.asked[name]) >= h.is.deletions, why, nil
}

func (h *fakeHost) discover(context.Context) error {
	h.mu.Lock()
	h.discoveries++
	is := h.is
	h.mu.Unlock()
	time.Sleep(is.takes)
	return is.discovery
}

// recorder is a test that notes how it failed.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Logf(string, ...any) {}

func TestHostProbe(t *testing.T) {
	stale := errors.New("clusterregistry.k8s.io/v1alpha1: stale")
	hangs, mute, full, both := well, well, well, well
	hangs.deletions, mute.discovery, full.creation = time.Hour, stale, errors.New("refused")
	both.deletions, both.discovery = time.Hour, stale
	slow := health{deletions: 29 * time.Second}
	sluggish, silent := mute, mute
	sluggish.takes, silent.takes = 8*time.Second, probeTimeout
	for name, test := range map[string]struct {
		story  func(*fakeHost, *hostProbe)
		want   []string // one for each failure
		reason string
	}{
		"well":             {func(h *fakeHost, _ *hostProbe) { h.set(well, 5*time.Minute) }, nil, "nothing happened"},
		"slow":             {func(h *fakeHost, _ *hostProbe) { h.set(slow, 5*time.Minute) }, nil, "30 seconds are allowed"},
		"a deletion hangs": {func(h *fakeHost, _ *hostProbe) { h.set(hangs, 2*time.Minute) }, []string{"the deletion of namespace probe-1, since 00:00:00, and lasts, more than 30s: discovery failed for clusterregistry.k8s.io/v1alpha1"}, "once, although it goes on"},
		"a busy computer":  {func(h *fakeHost, _ *hostProbe) { h.set(health{deletions: 50 * time.Second, busy: true}, 3*time.Minute) }, nil, "nothing blocks the deletion"},
		"too busy": {func(h *fakeHost, _ *hostProbe) {
			h.set(health{deletions: 65 * time.Second, busy: true}, 70*time.Second)
			h.set(well, time.Minute)
		}, []string{"more than 1m0s: nothing is named that blocks it"}, "that has a limit, too"},
		"ends while it hangs": {func(h *fakeHost, _ *hostProbe) { h.set(hangs, time.Second) }, []string{"namespace probe-1"}, "the end of the test must not hide it"},
		"a moment": {func(h *fakeHost, _ *hostProbe) {
			h.set(well, 8*time.Second)
			h.set(mute, 4*time.Second)
			h.set(well, time.Minute)
		}, nil, "a new APIService has no backend for a moment"},
		"discovery fails": {func(h *fakeHost, _ *hostProbe) {
			h.set(well, 12*time.Second)
			h.set(mute, 20*time.Second)
			h.set(well, time.Minute)
		}, []string{"discovery fails, since 00:00:20, and lasts, more than 5s: clusterregistry.k8s.io/v1alpha1: stale"}, "it names the group"},
		"a slow failure": {func(h *fakeHost, _ *hostProbe) {
			h.set(well, 8*time.Second)
			h.set(sluggish, 4*time.Second)
			h.set(well, time.Minute)
		}, nil, "it would have succeeded in the next moment, for all that one answer says"},
		"slow failures": {func(h *fakeHost, _ *hostProbe) {
			h.set(well, 8*time.Second)
			h.set(sluggish, 20*time.Second)
			h.set(well, time.Minute)
		}, []string{"discovery fails, since 00:00:10, and lasts, more than 5s"}, "two answers say how long"},
		"ends after a slow failure": {func(h *fakeHost, _ *hostProbe) {
			h.set(well, 8*time.Second)
			h.set(sluggish, 4*time.Second)
		}, []string{"discovery fails, since 00:00:10, and lasts, more than 5s"}, "the end of the test does not settle it"},
		"no answer at all": {func(h *fakeHost, _ *hostProbe) {
			h.set(well, 8*time.Second)
			h.set(silent, 4*time.Second)
			h.set(well, time.Minute)
		}, []string{"discovery fails, since 00:00:10, and lasts, more than 5s"}, "an answer that does not come is no moment"},
		"creation fails": {func(h *fakeHost, _ *hostProbe) { h.set(full, time.Minute) }, []string{"no namespace can be created"}, "that is suffering, too"},
		"announced": {func(h *fakeHost, p *hostProbe) {
			over := p.excuse("it is about that")
			h.set(both, 3*time.Minute)
			h.set(well, 20*time.Second)
			over()
			h.set(well, time.Minute)
		}, nil, "the test said so beforehand"},
		"announced after it began": {func(h *fakeHost, p *hostProbe) {
			h.set(well, 8*time.Second)
			h.set(mute, 10*time.Second)
			p.excuse("too late")
			h.set(mute, 10*time.Second)
		}, []string{"discovery fails, since 00:00:10"}, "an excuse holds from when it is made"},
		"goes on after the excuse": {func(h *fakeHost, p *hostProbe) {
			over := p.excuse("for a while")
			h.set(hangs, 3*time.Minute)
			over()
			h.set(hangs, 40*time.Second)
		}, []string{"namespace probe-1"}, "what was announced is to end"},
		"soon well after the excuse": {func(h *fakeHost, p *hostProbe) {
			over := p.excuse("for a while")
			h.set(hangs, 3*time.Minute)
			over()
			h.set(hangs, 10*time.Second)
			h.set(well, time.Minute)
		}, nil, "the namespace controller tries again in its own time"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host, failed := &fakeHost{is: well, asked: map[string]time.Time{}}, &recorder{}
				probe := startProbe(host)
				probe.join(failed)
				test.story(host, probe)
				if !probe.leave(failed) {
					t.Error("the last test is not the last")
				}
				if len(failed.errors) != len(test.want) {
					t.Fatalf("%s: the test failed with %q, want %q", test.reason, failed.errors, test.want)
				}
				for i, want := range test.want {
					if !strings.Contains(failed.errors[i], want) {
						t.Errorf("%s: the test failed with %q, want %q", test.reason, failed.errors[i], want)
					}
				}
			})
		})
	}
}

// TestHostProbeBetweenTests has the host suffer after one test, and before another one.
func TestHostProbeBetweenTests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &fakeHost{is: well, asked: map[string]time.Time{}}
		probe := startProbe(host)
		one, two := &recorder{}, &recorder{}
		probe.join(one)
		host.set(well, time.Minute)
		probe.pause(one)
		host.set(health{deletions: time.Hour}, time.Minute)
		host.set(well, 20*time.Second)
		probe.join(two)
		host.set(well, time.Minute)
		probe.pause(two)
		if unheard := probe.end(); len(one.errors)+len(two.errors) != 0 || len(unheard) != 1 || !strings.Contains(unheard[0], "the deletion of namespace") {
			t.Errorf("the tests failed with %q and %q, and %q was noticed between them", one.errors, two.errors, unheard)
		}
	})
}

// TestHostProbeShared has two tests share a probe, and asks what was seen of
// something announced.
func TestHostProbeShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &fakeHost{is: well, asked: map[string]time.Time{}}
		probe := startProbe(host)
		one, two := &recorder{}, &recorder{}
		probe.join(one)
		probe.join(two)
		host.set(well, time.Minute)
		if probe.leave(one) {
			t.Error("the first of two tests is the last")
		}
		host.set(health{deletions: time.Minute}, 55*time.Second)
		host.set(well, 20*time.Second)
		over := probe.excuse("for a reason")
		host.set(health{deletions: time.Hour}, time.Minute)
		host.set(well, time.Second)
		if seen := over(); !strings.Contains(seen, "as announced (for a reason): the deletion of namespace") {
			t.Errorf("seen was: %s", seen)
		}
		probe.leave(two)
		if len(one.errors) != 0 || len(two.errors) != 1 {
			t.Errorf("the test that had ended failed with %q, the other with %q", one.errors, two.errors)
		}
		if host.made < 10 || host.discoveries < 10 {
			t.Errorf("%d namespaces and %d discoveries", host.made, host.discoveries)
		}
	})
}
