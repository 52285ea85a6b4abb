package framework

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// Load is clients that create, patch, replace, read and delete clusters at a
// constant rate, whether earlier requests were answered or not. They speak plain
// HTTP/1.1 and never try again.
type Load struct {
	client *http.Client
	url    string
	rate   int

	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	pending map[int]bool
	lives   []*Life
	idle    []*Life
	failed  []string
	sent    int
	writes  int
	slowest time.Duration
	took    time.Duration
}

// Report is what became of a load.
type Report struct {
	// Lives are the clusters that it wrote.
	Lives []*Life
	// Sent counts the requests, and Failed tells of those that were not
	// answered as they should have been.
	Sent   int
	Failed []string
	// Rate is how many requests were sent in a second, and Slowest how long the
	// longest took.
	Rate    float64
	Slowest time.Duration
}

// String returns the report in one line.
func (r Report) String() string {
	writes := 0
	for _, l := range r.Lives {
		writes += l.Writes
	}
	return fmt.Sprintf("%d requests at %.1f/s, %d acknowledged writes to %d clusters, %d failed, the slowest took %s",
		r.Sent, r.Rate, writes, len(r.Lives), len(r.Failed), r.Slowest.Round(time.Millisecond))
}

// StartLoad starts a load of rate requests per second on the server that config
// leads to.
func StartLoad(t *testing.T, config *rest.Config, rate int) *Load {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig.NextProtos = nil
	transport := &http.Transport{TLSClientConfig: tlsConfig, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, MaxIdleConnsPerHost: 100 * rate}
	authenticated, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l := &Load{
		client: &http.Client{Transport: authenticated, Timeout: time.Minute}, url: config.Host + "/apis/clusterregistry.k8s.io/v1alpha1/clusters", rate: rate, cancel: cancel, pending: map[int]bool{},
	}
	t.Cleanup(cancel)
	l.done.Go(func() { l.send(ctx) })
	return l
}

// send starts requests on schedule. What the schedule is behind is made up for.
func (l *Load) send(ctx context.Context) {
	start := time.Now()
	for n := 0; ; n++ {
		due := start.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
		select {
		case <-ctx.Done():
			l.took = time.Since(start)
			return
		case <-time.After(time.Until(due)):
		}
		life, s := l.pick(n)
		l.done.Go(func() { l.request(n, life, s) })
	}
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
	}
	life := &Life{Name: fmt.Sprintf("load-%d", len(l.lives)), stays: len(l.lives)%2 == 0}
	l.lives = append(l.lives, life)
	s, _ := life.next()
	return life, s
}

// request sends one request. It runs to its end even when the load is stopped.
func (l *Load) request(n int, life *Life, s step) {
	start := time.Now()
	err := l.exchange(life, s)
	took := time.Since(start)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, n)
	l.slowest = max(l.slowest, took)
	if err != nil {
		life.InDoubt = s.writes()
		l.failed = append(l.failed, fmt.Sprintf("at %s, after %s: %v", start.Format("15:04:05.000"), took.Round(time.Millisecond), err))
		return
	}
	if s.writes() {
		l.writes++
	}
	l.idle = append(l.idle, life)
}

func (l *Load) exchange(life *Life, s step) error {
	var content []byte
	if s.body != nil {
		var err error
		if content, err = json.Marshal(s.body(life)); err != nil {
			return err
		}
	}
	url := s.url(l.url, life.Name)
	request, err := http.NewRequestWithContext(context.Background(), s.method, url, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", s.contentType)
	response, err := l.client.Do(request)
	if err != nil {
		return fmt.Errorf("step %d: %w", life.step, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", s.method, url, err)
	}
	return life.took(s, response.StatusCode, answer)
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

// Stop ends the load, waits for the last answers and reports.
func (l *Load) Stop() Report {
	l.cancel()
	l.done.Wait()
	return Report{Lives: l.lives, Sent: l.sent, Failed: l.failed, Rate: float64(l.sent) / l.took.Seconds(), Slowest: l.slowest}
}

// Compare returns how what is stored differs from what was acknowledged, or nil.
func (r Report) Compare(stored []v1alpha1.Cluster) error {
	left := map[string]*v1alpha1.Cluster{}
	for i := range stored {
		left[stored[i].Name] = &stored[i]
	}
	var errs []error
	for _, life := range r.Lives {
		got, ok := left[life.Name]
		delete(left, life.Name)
		switch {
		case life.InDoubt:
			errs = append(errs, life.survived(got))
		case !ok && life.Acknowledged != nil:
			errs = append(errs, fmt.Errorf("the acknowledged cluster %s is lost", life.Name))
		case ok && life.Acknowledged == nil:
			errs = append(errs, fmt.Errorf("the deleted cluster %s is back", life.Name))
		case ok:
			errs = append(errs, Same(life.Acknowledged, got))
		}
	}
	for name := range left {
		errs = append(errs, fmt.Errorf("nobody wrote the cluster %s", name))
	}
	return errors.Join(errs...)
}
