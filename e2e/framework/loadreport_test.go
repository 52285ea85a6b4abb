package framework

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestPhaseFailures counts the failures of a phase, and how long they went on.
func TestPhaseFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &phase{name: "accident", from: time.Now()}
		if got := p.report(); got.Outage != 0 || got.Failed != 0 || len(got.Examples) != 0 {
			t.Errorf("nothing failed yet: %+v", got)
		}
		time.Sleep(time.Second)
		early := time.Now()
		time.Sleep(time.Second)
		p.fail(time.Now(), "0") // answered first, although it was sent later
		p.fail(early, "1")
		for i := 2; i < 10; i++ {
			time.Sleep(time.Second)
			p.fail(time.Now(), fmt.Sprint(i))
		}
		got := p.report()
		if got.Outage != 9*time.Second || got.Failed != 10 {
			t.Errorf("%d failed in %s", got.Failed, got.Outage)
		}
		if want := []string{"0", "1", "2", "7", "8", "9"}; !slices.Equal(got.Examples, want) {
			t.Errorf("the examples are %q, want %q", got.Examples, want)
		}
	})
}
