package framework

import (
	"context"
	"testing"
	"time"
)

// Patience is for how long a test waits for what should happen. It is generous: computers
// are shared, and a wait ends as soon as its condition holds. It is more than the five
// minutes after which the operator tries again what failed.
const Patience = 10 * time.Minute

const interval = 250 * time.Millisecond

// Eventually waits until check returns nil. When it never does, the test fails
// with check's last error.
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
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		last := check(ctx)
		if last == nil {
			return true
		}
		select {
		case <-ctx.Done():
			t.Errorf("gave up after %s waiting for %s: %v", time.Since(start).Round(time.Second), what, last)
			return false
		case <-time.After(interval):
		}
	}
}
