package framework

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Load is clients that create, patch, replace, read, list and delete clusters at
// a constant rate, whether earlier requests were answered or not, and clients
// that watch them if wanted. They speak plain HTTP/1.1 and never try again.
type Load struct {
	client     *http.Client
	url        string
	rate       int
	name       string // of the option Named
	watchers   int
	population int
	rewritten  bool
	limit      int

	cancel context.CancelFunc
	done   sync.WaitGroup

	watches      []*watcher
	stopWatching context.CancelFunc
	watching     sync.WaitGroup

	mu      sync.Mutex
	pending map[int]bool
	lives   []*Life
	idle    []*Life
	begun   int
	// conflicts counts the replacements that were done again.
	conflicts int
	// staying counts the lives that stay, and resting are those at their end.
	staying int
	resting []*Life
	failed  []string
	sent    int
	writes  int
	held    time.Duration
	start   time.Time
	phases  []*phase
}

// LoadOption changes what a load does.
type LoadOption func(*Load)

// Watchers has so many clients watch the load's clusters from before the first
// write. Each must be told of every acknowledged write exactly once, and in
// order for each cluster; a watch that ends is resumed from the last version
// that it told. Report.Compare says what was missed.
func Watchers(n int) LoadOption { return func(l *Load) { l.watchers = n } }

// Population limits how many clusters stay, for loads of many minutes: when
// there are so many, the load goes on to change those that it wrote long ago.
func Population(n int) LoadOption { return func(l *Load) { l.population = n } }

// Rewritten lets others store the load's clusters again without changing them,
// as an operator does after the storage version has changed. A replacement that
// conflicts with that is done again with the version that was read.
func Rewritten() LoadOption { return func(l *Load) { l.rewritten = true } }

// Pending limits how many requests are under way, for loads during which nothing
// may be answered for a while: each waits on a connection of its own, and too
// many of these would keep a small computer from ever coming back. At the limit
// the load is held; what it did not send meanwhile, it never sends.
func Pending(n int) LoadOption { return func(l *Load) { l.limit = n } }

// Named has the names of the load's clusters begin with another word than "load", for a registry
// that has had a load before.
func Named(name string) LoadOption { return func(l *Load) { l.name = name } }

// StartLoad starts a load of rate requests per second on the server that config
// leads to.
func StartLoad(t *testing.T, config *rest.Config, rate int, options ...LoadOption) *Load {
	t.Helper()
	transport, server, err := Transport(config, 100*rate)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l := &Load{
		client: &http.Client{Transport: transport, Timeout: time.Minute}, url: server + "/apis/clusterregistry.k8s.io/v1alpha1/clusters", rate: rate, cancel: cancel, pending: map[int]bool{},
		start: time.Now(), phases: []*phase{{name: "start", from: time.Now()}},
	}
	for _, option := range options {
		option(l)
	}
	t.Cleanup(cancel)
	l.startWatches(t, transport)
	l.done.Go(func() { l.send(ctx) })
	return l
}

// startWatches begins the watches, before there is anything to tell.
func (l *Load) startWatches(t *testing.T, transport http.RoundTripper) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l.stopWatching = stop
	t.Cleanup(stop)
	for i := range l.watchers {
		w := newWatcher(fmt.Sprintf("watch %d", i), l.url, transport, l.fail)
		if err := w.begin(ctx); err != nil {
			t.Fatalf("%s of the load: %v", w.name, err)
		}
		l.watches = append(l.watches, w)
		l.watching.Go(func() { w.follow(ctx) })
	}
}

// send starts requests on schedule. What the schedule is behind is made up for.
func (l *Load) send(ctx context.Context) {
	start := time.Now()
	for n := 0; ; n++ {
		due := start.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		start = start.Add(l.hold(ctx))
		life, s := l.pick(n)
		l.done.Go(func() { l.request(n, life, s) })
	}
}

// hold waits until there is room for another request, and returns for how long.
func (l *Load) hold(ctx context.Context) time.Duration {
	full := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.limit > 0 && len(l.pending) >= l.limit
	}
	from := time.Now()
	if !full() {
		return 0
	}
	for ctx.Err() == nil && full() {
		time.Sleep(10 * time.Millisecond)
	}
	held := time.Since(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = max(l.held, held)
	return held
}

// pick returns a cluster without a request under way, a new one when there is
// none, and its next step.
func (l *Load) pick(n int) (*Life, step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	l.pending[n] = true
	if len(l.idle) > 0 {
		life := l.idle[0]
		l.idle = l.idle[1:]
		if s, ok := life.next(); ok {
			return life, s
		}
		if life.stays && l.population > 0 {
			l.resting = append(l.resting, life)
		}
	}
	life := l.begin()
	s, _ := life.next()
	return life, s
}

// begin returns a cluster that is new, or one that begins another round where
// enough of them stay. Every second one is to stay.
func (l *Load) begin() *Life {
	stays := l.begun%2 == 0
	l.begun++
	if stays && l.population > 0 && l.staying >= l.population {
		if len(l.resting) > 0 {
			life := l.resting[0]
			l.resting = l.resting[1:]
			life.again()
			return life
		}
		stays = false
	}
	if stays {
		l.staying++
	}
	life := newLife(fmt.Sprintf("%s-%d", cmp.Or(l.name, "load"), len(l.lives)), stays, l.rewritten)
	l.lives = append(l.lives, life)
	return life
}

// Mark begins a new phase, which is reported by itself. A request belongs to
// the phase that it was sent in. The first phase is called start.
func (l *Load) Mark(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.phases[len(l.phases)-1].to = now
	l.phases = append(l.phases, &phase{name: name, from: now})
}

// Phase returns how the last phase that was marked went so far.
func (l *Load) Phase() Phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := *l.phases[len(l.phases)-1]
	last.to = time.Now()
	return last.report()
}

// Acknowledged returns how many writes were acknowledged so far.
func (l *Load) Acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes
}

// Settle waits until a second's worth of further requests was sent and all that
// were sent until then are answered.
func (l *Load) Settle(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	until := l.sent + l.rate
	l.mu.Unlock()
	Eventually(t, "the load's requests to be answered", func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.sent < until {
			return fmt.Errorf("request %d was not sent yet", until)
		}
		for n := range l.pending {
			if n < until {
				return fmt.Errorf("request %d was not answered yet", n)
			}
		}
		return nil
	})
}

// Stop ends the load, waits for the last answers and until the watches have
// told of all that was acknowledged, and reports.
func (l *Load) Stop() Report {
	l.cancel()
	l.done.Wait()
	l.mu.Lock()
	l.phases[len(l.phases)-1].to = time.Now()
	l.mu.Unlock()
	catchUp(l.watches, l.lives)
	l.stopWatching()
	l.watching.Wait()
	return l.report()
}

// Failures returns how many requests have failed so far.
func (l *Load) Failures() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.failed)
}
