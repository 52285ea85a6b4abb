package framework

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"
)

const (
	// Patience is how long a test waits while nothing changes. Nothing of the product needs as
	// long: after an error the operator tries again within 30 seconds, a mounted Secret comes
	// to the pods within two minutes, and the longest period of a check is two minutes. What
	// is left is for a computer that is shared, on which a kube-apiserver, a pod or an
	// election may take ten times as long as it does alone.
	Patience = 3 * time.Minute
	// Beginning is how long a process may take until it serves, or has refused to. Nothing tells
	// that it gets on.
	Beginning = 2 * Patience
	// Bound is how long a test waits in all. Installations, upgrades, scalings and recoveries
	// take minutes on a busy computer, but change something every few seconds; none takes as
	// long as this. It also ends a wait whose check always says something else.
	Bound = 15 * time.Minute
)

const (
	interval    = 250 * time.Millisecond
	maxInterval = time.Second
)

// breather is how long a wait rests after a check that took so long. On a busy computer a check
// takes long because of what else runs, as what it waits for does, from which checks at once
// would take a good part of the processors.
func breather(took time.Duration) time.Duration { return min(max(interval, 2*took), maxInterval) }

// Eventually waits until check returns nil. It continues as long as there is progress, which
// is an error of check that it has not returned before: an error says what is seen. The test
// fails with check's last error after Patience without progress, and after Bound in any case.
func Eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	if !eventually(t.Context(), t, what, check) {
		t.FailNow()
	}
}

// EventuallyAfter is Eventually for clean-up, when the test's own context has
// ended; it goes on after a failure.
func EventuallyAfter(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	eventually(context.Background(), t, what, check)
}

// Eventually is the function of that name for the environment's test.
func (e *Env) Eventually(what string, check func(context.Context) error) {
	e.t.Helper()
	Eventually(e.t, what, check)
}

func eventually(ctx context.Context, t *testing.T, what string, check func(context.Context) error) bool {
	t.Helper()
	if err := await(ctx, check); err != nil {
		t.Errorf("gave up waiting for %s %v", what, err)
		return false
	}
	return true
}

// await is eventually without a test. The error says for how long it has waited, and for what.
func await(ctx context.Context, check func(context.Context) error) error {
	p := newProgress(time.Now())
	ctx, cancel := context.WithTimeout(ctx, Bound)
	defer cancel()
	for {
		began := time.Now()
		last := look(ctx, check)
		if last == nil {
			return nil
		}
		now := time.Now()
		over := p.stalled(last.Error(), now)
		if !over {
			select {
			case <-ctx.Done():
				over = true
			case <-time.After(breather(now.Sub(began))):
			}
		}
		if over {
			return fmt.Errorf("after %s, of which %s without progress: %w", now.Sub(p.began).Round(time.Second), now.Sub(p.last).Round(time.Second), last)
		}
	}
}

// look ends a check that waits itself, as for an answer that does not come.
func look(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return check(ctx)
}

// progress tells a wait that gets somewhere from one that does not.
type progress struct {
	began, last time.Time
	seen        map[string]bool
}

func newProgress(now time.Time) *progress {
	return &progress{began: now, last: now, seen: map[string]bool{}}
}

// accidental is what differs in two errors that say the same: addresses in memory, and the
// client's port of a connection.
var accidental = regexp.MustCompile(`0x[0-9a-f]+|[^ ]*:[0-9]+->`)

// stalled takes what is seen at a time, and reports whether that has been nothing new for
// Patience. What alternates is nothing new.
func (p *progress) stalled(state string, now time.Time) bool {
	state = accidental.ReplaceAllString(state, "")
	if !p.seen[state] {
		p.seen[state], p.last = true, now
	}
	return now.Sub(p.last) >= Patience
}
