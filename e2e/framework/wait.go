package framework

import (
	"context"
	"time"
)

const (
	// patience is generous: these machines are shared, and a wait ends as
	// soon as its condition holds.
	patience = 5 * time.Minute
	interval = 250 * time.Millisecond
)

// Eventually waits until check returns nil. When it never does, the test fails
// with check's last error.
func (e *Env) Eventually(what string, check func(context.Context) error) {
	e.t.Helper()
	if !e.eventually(e.t.Context(), what, check) {
		e.t.FailNow()
	}
}

func (e *Env) eventually(ctx context.Context, what string, check func(context.Context) error) bool {
	e.t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		last := check(ctx)
		if last == nil {
			return true
		}
		select {
		case <-ctx.Done():
			e.t.Errorf("gave up after %s waiting for %s: %v", time.Since(start).Round(time.Second), what, last)
			return false
		case <-time.After(interval):
		}
	}
}
