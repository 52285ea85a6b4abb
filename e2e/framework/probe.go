package framework

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// probePeriod is how often the host cluster is probed.
	probePeriod = 10 * time.Second
	// deletionLimit is how long the deletion of an empty namespace may take. The
	// namespace controller itself waits five seconds of that.
	deletionLimit = 30 * time.Second
	// slowLimit is how long it may take while the host names nothing that blocks it:
	// on a computer that is given ten times what it can do, the controllers alone
	// have been seen to take 34 seconds.
	slowLimit = time.Minute
	// discoveryLimit is how long discovery, and the creation of a namespace, may fail.
	// It is not 0 because an APIService that was just created has no backend until
	// kube-apiserver has asked it for the first time.
	discoveryLimit = 5 * time.Second
	// retryPeriod is how soon what failed or is not done yet is asked for again.
	retryPeriod = time.Second
)

// probed is what a probe asks of the host cluster.
type probed interface {
	// createNamespace returns the name of a new, empty namespace.
	createNamespace(ctx context.Context) (name string, err error)
	// deleteNamespace asks for the deletion of a namespace.
	deleteNamespace(ctx context.Context, name string) error
	// namespaceGone returns whether a namespace is gone, and what blocks its deletion,
	// nothing when the host names nothing.
	namespaceGone(ctx context.Context, name string) (gone bool, why string, err error)
	// discover asks every API group for its resources; the error names those that
	// don't answer.
	discover(ctx context.Context) error
}

// hostProbe creates and deletes a namespace of the host cluster every ten seconds,
// and asks for the discovery of all API groups, while e2e tests run. What takes
// too long, or fails, fails these tests, unless one has said beforehand that the
// host may suffer.
type hostProbe struct {
	host probed

	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	tests map[testing.TB]bool
	// unheard are the times in which the host suffered too long while no test ran.
	unheard []string
	excuses []*excuse
	spells  []*spell
	// namespaces counts those that were deleted, slowest is how long the slowest
	// deletion took, and discoveries counts the answers that were complete.
	namespaces, discoveries int
	slowest                 time.Duration
}

// excuse is a time in which the host may suffer.
type excuse struct {
	reason   string
	from, to time.Time // to is zero while it lasts
}

// spell is a time in which the host suffered.
type spell struct {
	what     string
	limit    time.Duration
	from, to time.Time // to is zero while it lasts
	why      string
	reported bool
	// failures counts the answers that the host was not well, and slowest is how long
	// such a one took at most.
	failures int
	slowest  time.Duration
}

// answer is how the host is: whether it is well, if not why, and how long that
// may last.
type answer struct {
	well  bool
	why   string
	limit time.Duration
}

// take notes an answer to a request that was sent at a time.
func (s *spell) take(a answer, sent time.Time) {
	if a.well {
		s.to = sent
		return
	}
	s.why, s.limit = a.why, a.limit
	s.failures++
	s.slowest = max(s.slowest, time.Since(sent))
}

// tooLong reports whether a spell is longer than its limit, but for what excuses cover.
// One failure does not tell how long the host suffered: a busy computer can take longer
// than the limit for a request that fails, and would succeed in the next moment. One that
// took half of the time that there is for an answer does tell.
func (s *spell) tooLong(now time.Time, excuses []*excuse) bool {
	return (s.failures > 1 || s.slowest >= probeTimeout/2) && s.unexcused(now, excuses) > s.limit
}

// String says what happened, since when, for how long and why.
func (s *spell) String() string {
	lasts := "and lasts"
	if !s.to.IsZero() {
		lasts = "for " + s.to.Sub(s.from).Round(100*time.Millisecond).String()
	}
	return fmt.Sprintf("%s, since %s, %s, more than %s: %s", s.what, s.from.Format(time.TimeOnly), lasts, s.limit, s.why)
}

// unexcused returns how much of a spell no excuse covers.
func (s *spell) unexcused(now time.Time, excuses []*excuse) time.Duration {
	end := s.to
	if end.IsZero() {
		end = now
	}
	var out time.Duration
	at := s.from
	for at.Before(end) {
		covered, next := false, end
		for _, e := range excuses {
			switch {
			case e.from.After(at):
				next = earlier(next, e.from)
			case e.to.IsZero() || e.to.After(at):
				covered = true
				if !e.to.IsZero() {
					next = earlier(next, e.to)
				}
			}
		}
		if !covered {
			out += next.Sub(at)
		}
		at = next
	}
	return out
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// startProbe starts a probe, which ends with the last of the tests that join it.
func startProbe(host probed) *hostProbe {
	// It goes on while a test's clean-up does, when the test's context has ended.
	ctx, stop := context.WithCancel(context.Background())
	p := &hostProbe{host: host, stop: stop, tests: map[testing.TB]bool{}}
	p.done.Go(func() { p.every(ctx, p.namespace) })
	p.done.Go(func() { p.every(ctx, p.discovery) })
	return p
}

// every calls round at once and then every ten seconds, but never twice at a time.
func (p *hostProbe) every(ctx context.Context, round func(context.Context)) {
	for next := time.Now(); ctx.Err() == nil; {
		round(ctx)
		next = next.Add(probePeriod)
		if late := time.Now(); next.Before(late) {
			next = late
		}
		wait(ctx, time.Until(next))
	}
}

// wait returns after a time, or when the context ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// namespace creates a namespace, deletes it and waits until it is gone.
func (p *hostProbe) namespace(ctx context.Context) {
	var name string
	if !p.until(ctx, "no namespace can be created", func(ctx context.Context) answer {
		if name == "" {
			created, err := p.host.createNamespace(ctx)
			if err != nil {
				return answer{false, err.Error(), discoveryLimit}
			}
			name = created
		}
		if err := p.host.deleteNamespace(ctx, name); err != nil {
			return answer{false, err.Error(), discoveryLimit}
		}
		return answer{well: true}
	}) {
		return
	}
	asked := time.Now()
	if !p.until(ctx, "the deletion of namespace "+name, func(ctx context.Context) answer {
		gone, why, err := p.host.namespaceGone(ctx, name)
		switch {
		case err != nil:
			return answer{false, err.Error(), deletionLimit}
		case why != "":
			return answer{gone, why, deletionLimit}
		}
		return answer{gone, "nothing is named that blocks it", slowLimit}
	}) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.namespaces++
	p.slowest = max(p.slowest, time.Since(asked))
}

// discovery asks what the host serves.
func (p *hostProbe) discovery(ctx context.Context) {
	if !p.until(ctx, "discovery fails", func(ctx context.Context) answer {
		if err := p.host.discover(ctx); err != nil {
			return answer{false, err.Error(), discoveryLimit}
		}
		return answer{well: true}
	}) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.discoveries++
}

// until asks again and again until the host is well, and returns whether it is.
// The time until then is a spell, which is over when a request that went well
// was sent. When the probe is stopped, it goes on until the spell has been
// reported, or is excused.
func (p *hostProbe) until(stopped context.Context, what string, ask func(context.Context) answer) bool {
	s := &spell{what: what, from: time.Now(), limit: slowLimit}
	p.mu.Lock()
	p.spells = append(p.spells, s)
	p.mu.Unlock()
	for {
		sent := time.Now()
		got := ask(context.Background())
		p.mu.Lock()
		s.take(got, sent)
		over := p.judge(s)
		if got.well && s.reported {
			for t := range p.tests {
				t.Logf("the host cluster is well again: %s", s)
			}
		}
		p.mu.Unlock()
		if got.well {
			return true
		}
		if stopped.Err() != nil && over {
			return false
		}
		wait(context.Background(), retryPeriod)
	}
}

// judge fails the tests that run when a spell was too long, and returns whether
// that is settled. It is called with the lock held.
func (p *hostProbe) judge(s *spell) bool {
	now := time.Now()
	if !s.reported && s.tooLong(now, p.excuses) {
		s.reported = true
		if len(p.tests) == 0 {
			p.unheard = append(p.unheard, s.String())
		}
		for t := range p.tests {
			t.Errorf("the host cluster suffers: %s", s)
		}
	}
	return s.reported || s.tooLong(now, nil)
}

// excuse allows the host to suffer from now on, until the returned function is
// called, which returns what was seen of it.
func (p *hostProbe) excuse(reason string) (end func() string) {
	e := &excuse{reason: reason, from: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.excuses = append(p.excuses, e)
	return func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		if e.to.IsZero() {
			e.to = time.Now()
		}
		return p.during(e)
	}
}

// during tells of the spells in an excuse that would have failed a test. It is
// called with the lock held.
func (p *hostProbe) during(e *excuse) string {
	var seen []string
	for _, s := range p.spells {
		now := time.Now()
		if s.tooLong(now, nil) && s.from.Before(e.to) && (s.to.IsZero() || s.to.After(e.from)) {
			seen = append(seen, s.String())
		}
	}
	if len(seen) == 0 {
		return fmt.Sprintf("the host cluster could have suffered (%s), and did not", e.reason)
	}
	return fmt.Sprintf("the host cluster suffered, as announced (%s): %s", e.reason, strings.Join(seen, "; "))
}

// join has a test fail when the host suffers from now on.
func (p *hostProbe) join(t testing.TB) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tests[t] = true
}

// leave is called when a test ends. The last one to leave stops the probe: what
// is under way is waited for until it is done or has taken too long.
func (p *hostProbe) leave(t testing.TB) (last bool) {
	p.mu.Lock()
	last = len(p.tests) == 1
	p.mu.Unlock()
	if last {
		p.stop()
		p.done.Wait()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tests, t)
	return last
}

// pause is leave for a test after which others may follow: the probe continues meanwhile.
func (p *hostProbe) pause(t testing.TB) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tests, t)
}

// end stops the probe as the last test to leave does, and returns how the host suffered while
// no test ran.
func (p *hostProbe) end() (unheard []string) {
	p.stop()
	p.done.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unheard
}

// String says what the probe did.
func (p *hostProbe) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("host probe: %d namespaces deleted, the slowest in %s; %d times all API groups answered", p.namespaces, p.slowest.Round(100*time.Millisecond), p.discoveries)
}
