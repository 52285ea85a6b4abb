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

// TestStalled has clients be answered, but late.
func TestStalled(t *testing.T) {
	quick := Phase{P99: time.Second, Slowest: 5 * time.Second}
	for _, test := range []struct {
		reason string
		report Report
		stalls bool
	}{
		{"no request was sent", Report{}, false},
		{"all are answered soon", Report{Held: time.Second, Phases: []Phase{quick}, Watches: []Watched{{Listed: 1}}}, false},
		{"nothing was sent for a while", Report{Held: 16 * time.Second, Phases: []Phase{quick}}, true},
		{"one was answered late", Report{Phases: []Phase{quick, {P99: time.Second, Slowest: 31 * time.Second}}}, true},
		{"many were answered late", Report{Phases: []Phase{{P99: 11 * time.Second, Slowest: 12 * time.Second}, quick}}, true},
		{"a watch is always too slow", Report{Watches: []Watched{{}, {Listed: 4}}}, true},
	} {
		if err := test.report.Stalled(); (err != nil) != test.stalls {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
