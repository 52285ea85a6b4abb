package framework

import (
	"sync"
	"testing"
)

// together is how many subtests Together runs at once: they wait more than they compute.
const together = 4

// Together runs subtests at once, a few at a time, and returns when all have ended. A subtest
// that calls t.Parallel waits behind all tests whose turn comes first, and what its parent has
// started for it stands idle for that long; these don't wait.
func Together(t *testing.T, cases map[string]func(*testing.T)) {
	t.Helper()
	slots := make(chan struct{}, together)
	var all sync.WaitGroup
	for name, test := range cases {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(name, test)
		})
	}
	all.Wait()
}
