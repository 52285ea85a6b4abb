package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLimit does random things and looks after each whether what holds at all times
// does, and whether all who can be served are.
func TestLimit(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := newLimit("test", 1+random.IntN(60), 1+random.IntN(60))
		running, waiting := map[*turn]bool{}, map[*turn]bool{}
		for step := range 400 {
			switch do := random.IntN(10); {
			case do < 5:
				before, places := l.queueOf("user0"), l.size-l.waiting
				user := fmt.Sprint("user", random.IntN(1+random.IntN(8)))
				mine := l.join(user, random.IntN(12))
				if mine != nil {
					waiting[mine] = true
				} else if user == "user0" && before < places {
					t.Fatalf("seed %d, step %d: refused with %d of %d places free for a user with %d", seed, step, places, l.size, before)
				}
			case do < 9:
				for mine := range running {
					l.leave(mine)
					delete(running, mine)
					break
				}
			default:
				for mine := range waiting {
					if !l.withdraw(mine) {
						t.Fatalf("seed %d, step %d: a turn that waits can't be withdrawn", seed, step)
					}
					delete(waiting, mine)
					break
				}
			}
			for mine := range waiting {
				select {
				case <-mine.come:
					delete(waiting, mine)
					running[mine] = true
				default:
				}
			}
			if err := l.check(running, waiting); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		for mine := range waiting {
			l.withdraw(mine)
			select {
			case <-mine.come:
				running[mine] = true
			default:
			}
		}
		for mine := range running {
			l.leave(mine)
		}
		if l.taken != 0 || l.waiting != 0 || len(l.flows) != 0 {
			t.Errorf("seed %d: in the end %d seats are taken, %d wait, %d users are known", seed, l.taken, l.waiting, len(l.flows))
		}
	}
}

func (l *limit) queueOf(user string) int {
	if of := l.flows[user]; of != nil {
		return len(of.queue)
	}
	return 0
}

func (l *limit) check(running, waiting map[*turn]bool) error {
	seats, taken := 0, map[string]int{}
	for mine := range running {
		seats += mine.seats
		taken[mine.user] += mine.seats
	}
	if seats != l.taken || seats > l.size || len(waiting) != l.waiting || l.waiting > l.size {
		return fmt.Errorf("%d seats of %d are taken and %d counted, %d wait and %d are counted", seats, l.size, l.taken, len(waiting), l.waiting)
	}
	for user, n := range taken {
		if l.flows[user].taken != n || n > l.each {
			return fmt.Errorf("%s has %d seats and %d are counted", user, n, l.flows[user].taken)
		}
	}
	// No one with fewer seats waits than another who could be served.
	var next *turn
	for mine := range waiting {
		if l.flows[mine.user].queue[0] != mine || taken[mine.user]+mine.seats > l.each {
			continue
		}
		if next == nil || taken[mine.user] < taken[next.user] || taken[mine.user] == taken[next.user] && mine.number < next.number {
			next = mine
		}
	}
	if next != nil && taken[next.user]+next.seats <= l.size-l.taken {
		return fmt.Errorf("%s waits for %d seats with %d, although %d are free", next.user, next.seats, taken[next.user], l.size-l.taken)
	}
	return nil
}

// TestLimitInParallel has many take turns at a time, half of whom give up now and
// then. The seats are never more than there are.
func TestLimitInParallel(t *testing.T) {
	l := newLimit("test", 8, 8)
	var inUse atomic.Int64
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for j := range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if i%2 == 0 && j%3 == 0 {
					cancel()
				}
				mine := l.join(fmt.Sprint("user", i%5), 1+i%2)
				if mine != nil && await(ctx, l, mine, func(bool) {}) {
					if inUse.Add(int64(mine.seats)) > 8 {
						t.Error("more seats are in use than there are")
					}
					inUse.Add(-int64(mine.seats))
					l.leave(mine)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if l.taken != 0 || l.waiting != 0 || len(l.flows) != 0 {
		t.Errorf("in the end %d seats are taken, %d wait, %d users are known", l.taken, l.waiting, len(l.flows))
	}
}
