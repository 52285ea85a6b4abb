package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/clusterregistry/operator/e2e/history/feed"
)

// Options are what clients do.
type Options struct {
	// Rate is how many requests are sent in a second, as long as a client is free.
	Rate int
	// Clients is how many there are. Each has one request at a time, and a cluster that no
	// other client creates or deletes.
	Clients int
	// Watchers is how many clients watch meanwhile.
	Watchers int
	// Timeout is how long a client waits for an answer.
	Timeout time.Duration
	// Rewritten lets others store clusters again as they are.
	Rewritten bool
	// Seed chooses what is asked for.
	Seed uint64
}

// Recorder has clients use a registry, and records what they are answered.
type Recorder struct {
	options Options
	label   string
	url     string
	http    *http.Client
	began   time.Time
	plan    *plan
	free    chan int

	stop    context.CancelFunc
	sending sync.WaitGroup

	watchers []*watcher
	unwatch  context.CancelFunc
	watching sync.WaitGroup

	mu         sync.Mutex
	operations []Operation
	failures   []Failure
	// acknowledged counts the writes that were done so far, and answered all answers.
	acknowledged, answered int
	held                   time.Duration
}

// Failure is a request, or a watch, that was not answered as it should be.
type Failure struct {
	// At is when it was sent, and Until when that was known, since the history began.
	At, Until time.Duration
	Text      string
}

func (f Failure) String() string {
	return fmt.Sprintf("at %s, after %s: %s", f.At.Round(time.Millisecond), (f.Until - f.At).Round(time.Millisecond), f.Text)
}

// Start has clients use the clusters of a server, which all get a label, until Stop is
// called. There must be none with that label.
func Start(ctx context.Context, transport http.RoundTripper, server, label string, options Options) (*Recorder, error) {
	r := &Recorder{
		options: options, label: label, url: server + "/apis/clusterregistry.k8s.io/v1beta1/clusters",
		http: &http.Client{Transport: transport, Timeout: options.Timeout}, began: time.Now(),
		plan: newPlan(label, options.Clients, rand.New(rand.NewPCG(options.Seed, 0))), free: make(chan int, options.Clients), //nolint:gosec // a test repeats it
	}
	watching, unwatch := context.WithCancel(ctx)
	for i := range options.Watchers {
		w := &watcher{name: fmt.Sprintf("watch %d", i), source: feed.Source{URL: r.url + "?labelSelector=" + labelKey + "%3D" + label, Client: &http.Client{Transport: transport}}, since: r.since, failed: r.failed}
		if err := w.begin(watching); err != nil {
			unwatch()
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		r.watchers = append(r.watchers, w)
		r.watching.Go(func() { w.follow(watching) })
	}
	for client := range options.Clients {
		r.free <- client
	}
	sending, stop := context.WithCancel(ctx)
	r.stop, r.unwatch = stop, unwatch
	r.sending.Go(func() { r.send(sending) })
	return r, nil
}

// since is how long ago the history began.
func (r *Recorder) since() time.Duration { return time.Since(r.began) }

// send has free clients send requests on schedule. While none is free, nothing is sent, and
// that is not made up for.
func (r *Recorder) send(ctx context.Context) {
	tick := time.NewTicker(time.Second / time.Duration(r.options.Rate))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		from := time.Now()
		select {
		case <-ctx.Done():
			return
		case client := <-r.free:
			r.hold(time.Since(from))
			// What is sent runs to its end, also when the recorder is stopped.
			r.sending.Go(func() {
				r.ask(r.plan.next(client))
				r.free <- client
			})
		}
	}
}

// hold notes that no client was free.
func (r *Recorder) hold(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held += d
}

// ask sends a request and records what became of it. What it creates or replaces is a cluster
// of such an identity.
func (r *Recorder) ask(o Operation, of Cluster) Operation {
	o.Call = r.since()
	answer := exchange(r.http, r.url, r.label, o, of)
	o.Return, o.Result, o.Found, o.Listed, o.Failure = r.since(), answer.Result, answer.Found, answer.Listed, answer.Failure
	r.plan.learn(o)
	if o.Result == Unanswered {
		r.failed(Failure{o.Call, o.Return, o.String()})
		o.Return = Open
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, o)
	if o.Result != Unanswered {
		r.answered++
	}
	if o.writes() && o.Result == Done {
		r.acknowledged++
	}
	return o
}

func (r *Recorder) failed(f Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, f)
}

// Acknowledged returns how many writes were acknowledged so far.
func (r *Recorder) Acknowledged() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.acknowledged
}

// Failures returns how many requests and watches have failed so far.
func (r *Recorder) Failures() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures)
}

// Now returns the time by which the history is told.
func (r *Recorder) Now() time.Duration { return r.since() }

// Stop ends the clients, waits for the last answers and until the watches reported all
// that is there, and returns what was recorded. The registry must answer by then.
func (r *Recorder) Stop(ctx context.Context) (History, Figures, error) {
	r.stop()
	r.sending.Wait()
	defer r.watching.Wait()
	defer r.unwatch()
	figures := r.figures()
	marker, err := r.until(ctx, func(attempt int) Operation {
		return Operation{Kind: Create, Key: fmt.Sprintf("%s-end-%d", r.label, attempt), Write: fmt.Sprintf("end-%d", attempt)}
	})
	if err != nil {
		return History{}, figures, err
	}
	if err := r.catchUp(ctx, marker.found().Version); err != nil {
		return History{}, figures, err
	}
	if _, err := r.until(ctx, func(int) Operation { return Operation{Kind: List} }); err != nil {
		return History{}, figures, err
	}
	r.unwatch()
	r.watching.Wait()
	h := History{Operations: r.operations, Rewritten: r.options.Rewritten}
	for _, w := range r.watchers {
		h.Watches = append(h.Watches, w.told...)
	}
	return h, figures, nil
}

// until asks again and again until there is an answer, and returns that.
func (r *Recorder) until(ctx context.Context, ask func(attempt int) Operation) (Operation, error) {
	for attempt := 0; ; attempt++ {
		o := r.ask(ask(attempt), Cluster{})
		if o.Result == Done {
			return o, nil
		}
		select {
		case <-ctx.Done():
			return o, fmt.Errorf("%s: %w", o, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// catchUp waits until all watches reported a version.
func (r *Recorder) catchUp(ctx context.Context, version uint64) error {
	for _, w := range r.watchers {
		for w.version() < version {
			select {
			case <-ctx.Done():
				return errors.Join(fmt.Errorf("%s was told up to version %d, and a cluster was created in version %d", w.name, w.version(), version), ctx.Err())
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}
