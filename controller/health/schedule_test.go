package health

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// TestNextIsSpreadEvenly expects that no second of a minute has much more than its
// share of many clusters, and that a cluster keeps its moment.
func TestNextIsSpreadEvenly(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 17, 0, time.UTC)
	const clusters = 10000
	perSecond := make([]int, 60)
	for i := range clusters {
		seed := fmt.Sprintf("6b1f0d3e-0000-4000-8000-%012d", i)
		at := next(now, seed, time.Minute)
		if !at.After(now) || at.After(now.Add(time.Minute)) {
			t.Fatalf("%v is not within a minute of %v", at, now)
		}
		if again := next(at, seed, time.Minute); again.Sub(at) != time.Minute {
			t.Fatalf("%v after %v", again, at)
		}
		perSecond[at.Second()]++
	}
	share := clusters / 60
	if most, least := slices.Max(perSecond), slices.Min(perSecond); most > 2*share || least < share/2 {
		t.Errorf("from %d to %d clusters a second, where %d are the share: %v", least, most, share, perSecond)
	}
}

// TestNextIsMonotonic expects that what is due doesn't depend on a wall clock that is
// set back meanwhile.
func TestNextIsMonotonic(t *testing.T) {
	if at := next(time.Now(), "seed", time.Minute); !strings.Contains(at.String(), " m=") {
		t.Errorf("%v is by the wall clock alone", at)
	}
}

// eventually waits for what another goroutine is about to do.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// TestDeadClustersDelayNone has as many clusters that never answer as there are places,
// and more, from the start on: the others are checked in every period.
func TestDeadClustersDelayNone(t *testing.T) {
	fake := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	const places, dead, live = 4, 20, 50
	var mu sync.Mutex
	checks, inFlight, most := map[string]int{}, 0, 0
	hang := make(chan struct{})
	check := func(ctx context.Context, key string) bool {
		mu.Lock()
		checks[key]++
		inFlight++
		most = max(most, inFlight)
		mu.Unlock()
		defer func() { mu.Lock(); inFlight--; mu.Unlock() }()
		if key[0] != 'd' {
			return true
		}
		select {
		case <-hang:
		case <-ctx.Done():
		}
		return false
	}
	s := newSchedule(fake, time.Minute, places, check, nil)
	for i := range dead {
		s.add(fmt.Sprint("dead-", i), fmt.Sprint(i), false, bad)
	}
	for i := range live {
		s.add(fmt.Sprint("good-", i), fmt.Sprint(-i), false, good)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.run(ctx) }()
	all := func(round int, prefix byte) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			for key, count := range checks {
				if key[0] == prefix && count >= round {
					n++
				}
			}
			return n == map[byte]int{'g': live, 'd': dead}[prefix]
		}
	}
	// A minute passes when the schedule waits and all good ones are in the queue: one whose
	// check has not ended would miss the round. The lock keeps the schedule from reading the
	// clock before that, and setting its timer after it.
	step := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for key, i := range s.items {
			if key[0] == 'g' && i.index < 0 {
				return false
			}
		}
		if !fake.HasWaiters() || !s.queue[0].due.After(fake.Now()) {
			return false
		}
		fake.Step(time.Minute)
		return true
	}
	for round := 1; round <= 5; round++ {
		eventually(t, "the schedule to wait", step)
		eventually(t, fmt.Sprintf("all good clusters in round %d", round), all(round, 'g'))
	}
	close(hang)
	eventually(t, "the dead clusters to have had a turn too", all(1, 'd'))
	cancel()
	<-ended
	if most > 2*places {
		t.Errorf("%d checks at once, with %d places each", most, places)
	}
}

// TestNewWaitsForNoDead expects that a new key, and one that leads elsewhere now, is
// checked within seconds whatever number of dead ones waits for a place, and that new
// ones are no more at once than others.
func TestNewWaitsForNoDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 4
		begun := map[string]time.Time{}
		var mu sync.Mutex
		inFlight, most := 0, 0
		s := newSchedule(clock.RealClock{}, time.Minute, places, func(ctx context.Context, key string) bool {
			mu.Lock()
			begun[key] = time.Now()
			inFlight++
			most = max(most, inFlight)
			mu.Unlock()
			defer func() { mu.Lock(); inFlight--; mu.Unlock() }()
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
			}
			return false
		}, nil)
		for i := range 1000 {
			s.add(fmt.Sprint("dead-", i), fmt.Sprint(i), false, bad)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); s.run(ctx) }()
		time.Sleep(10 * time.Minute)
		s.mu.Lock()
		waiting := s.waiting[bad][len(s.waiting[bad])-1].key
		s.mu.Unlock()
		at := time.Now()
		s.add("new", "new", true, fresh)
		s.hurry(waiting, true)
		time.Sleep(time.Second)
		mu.Lock()
		for _, key := range []string{"new", waiting} {
			if began := begun[key]; began.Before(at) {
				t.Errorf("%s is not checked a second after it was added or changed", key)
			}
		}
		mu.Unlock()
		for i := range 10 * places {
			s.add(fmt.Sprint("late-", i), fmt.Sprint(i), true, fresh)
		}
		time.Sleep(2 * time.Minute)
		cancel()
		<-ended
		if most > 2*places {
			t.Errorf("%d checks at once, of two lanes with %d places each", most, places)
		}
		if len(s.waiting[fresh]) != 0 {
			t.Errorf("%d new ones were not checked in two minutes", len(s.waiting[fresh]))
		}
	})
}

// TestHurry checks a cluster that has changed at once, but not again and again.
func TestHurry(t *testing.T) {
	fake := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s := newSchedule(fake, time.Minute, 1, func(context.Context, string) bool { return true }, nil)
	take := func() int {
		due, _ := s.take()
		for _, i := range due {
			s.do(t.Context(), i)
		}
		return len(due)
	}
	s.add("a", "a", true, good)
	if take() != 1 {
		t.Fatal("a new one is not checked at once")
	}
	s.hurry("a", false)
	if take() != 0 {
		t.Error("it is checked again without a pause")
	}
	fake.Step(pause)
	if take() != 1 {
		t.Error("it is not checked after the pause")
	}
	fake.Step(pause)
	due, _ := s.take()
	if len(due) == 0 { // unless its own moment has come
		s.hurry("a", false)
		if due, _ = s.take(); len(due) != 1 {
			t.Fatal("it is not due after it has changed")
		}
	}
	s.hurry("a", false) // while it is being checked
	s.do(t.Context(), due[0])
	fake.Step(pause)
	if take() != 1 {
		t.Error("what changed during a check is not checked after it")
	}
	s.remove("a")
	fake.Step(time.Hour)
	if take() != 0 || len(s.items) != 0 {
		t.Error("it is checked after it was removed")
	}
	s.hurry("a", false)
}

// TestReplacedWhileChecked expects one check at a time of a name that is deleted and
// made again, and the new one's to follow.
func TestReplacedWhileChecked(t *testing.T) {
	var s *schedule
	checks := 0
	s = newSchedule(clock.RealClock{}, time.Hour, 1, func(context.Context, string) bool {
		if checks++; checks == 1 {
			s.add("a", "new", true, good)
		}
		return true
	}, nil)
	s.add("a", "old", true, good)
	for range 2 {
		due, _ := s.take()
		if len(due) != 1 {
			t.Fatalf("%d are due", len(due))
		}
		s.do(t.Context(), due[0])
	}
	if due, _ := s.take(); len(due) != 0 || len(s.items) != 1 || len(s.queue) != 1 || s.items["a"].seed != "new" {
		t.Errorf("%d are due, of %v", len(due), s.items)
	}
}
