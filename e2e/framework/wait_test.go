package framework

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress has waits see something every second, and expects those to be given up that
// get nowhere, three minutes after the last news.
func TestProgress(t *testing.T) {
	for _, test := range []struct {
		reason string
		sees   func(second int) string
		// over is the second in which it is given up, 0 for never.
		over int
	}{
		{"always the same", func(int) string { return "0 of 3" }, 180},
		{"something new at last", func(s int) string { return fmt.Sprint(min(s/170, 3), " of 3") }, 510 + 180},
		{"always something new", func(s int) string { return fmt.Sprint(s) }, 0},
		{"two things in turn", func(s int) string { return fmt.Sprint("error ", s%2) }, 181},
		{"addresses in memory", func(s int) string { return fmt.Sprintf("%p, %#x", new(s), s) }, 180},
		{"ports of connections", func(s int) string {
			return fmt.Sprintf("read tcp 127.0.0.1:%d->127.0.0.1:6443: reset", 40000+s)
		}, 180},
		{"ports that are asked", func(s int) string { return fmt.Sprintf("dial tcp 127.0.0.1:%d: refused", 40000+s) }, 0},
	} {
		start := time.Now()
		p, over := newProgress(start), 0
		for second := range 1000 {
			if p.stalled(test.sees(second), start.Add(time.Duration(second)*time.Second)) {
				over = second
				break
			}
		}
		if over != test.over {
			t.Errorf("%s: given up in second %d, want %d", test.reason, over, test.over)
		}
	}
}

// TestSilence has a check wait for an answer that does not come.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := await(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(began); err == nil || took > 2*Patience+maxInterval {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestRest has checks take their time, and expects the rests between them to follow, within
// bounds.
func TestRest(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 250 * time.Millisecond, 100 * time.Millisecond: 250 * time.Millisecond, 400 * time.Millisecond: 800 * time.Millisecond, 3 * time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var begun []time.Time
			err := await(t.Context(), func(context.Context) error {
				begun = append(begun, time.Now())
				time.Sleep(took)
				if len(begun) < 3 {
					return fmt.Errorf("check %d", len(begun))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				if rested := begun[i+1].Sub(begun[i]) - took; rested != want {
					t.Errorf("after a check of %s it rested for %s, want %s", took, rested, want)
				}
			}
		})
	}
}
