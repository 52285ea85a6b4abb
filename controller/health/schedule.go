package health

import (
	"container/heap"
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// pause is the least time between two checks of a cluster, however often it changes.
const pause = 5 * time.Second

// lane is where a key waits for a place. Each has places of its own, since what may last
// until a timeout would delay the others.
type lane int

const (
	// fresh is for keys of which nothing is known yet: a new cluster is not to wait
	// behind all that are dead.
	fresh lane = iota
	// good is for keys whose last check was good.
	good
	// bad is for keys whose last check failed or was slow.
	bad
	lanes
)

// schedule has every key checked once in a period, each at its own moment, so that
// checks are spread evenly. A key that is due waits for a place in its lane. One that is
// being checked is not checked again before that has ended.
type schedule struct {
	clock   clock.Clock
	period  time.Duration
	check   func(context.Context, string) bool
	metrics *Metrics

	mu    sync.Mutex
	items map[string]*item
	queue queue
	// free counts the places of each lane, and waiting has what waits for one.
	free    [lanes]int
	waiting [lanes][]*item
	// wake is signaled when something is due earlier than before, or a place is free.
	wake chan struct{}
}

// item is a key's place in the schedule.
type item struct {
	key, seed string
	due, last time.Time
	lane      lane
	// index is its place in the queue; -1 while it is due or being checked.
	index int
	// running says that it is being checked.
	running bool
	// soon says that it is to be checked at once when the running check has ended, and
	// moved that this is a check of another endpoint.
	soon, moved bool
}

// newSchedule returns a schedule with the same number of places in each lane.
func newSchedule(c clock.Clock, period time.Duration, places int, check func(context.Context, string) bool, metrics *Metrics) *schedule {
	return &schedule{
		clock: c, period: period, check: check, metrics: metrics,
		free:  [lanes]int{places, places, places},
		items: map[string]*item{}, wake: make(chan struct{}, 1),
	}
}

// next returns the first moment after now that belongs to a seed. It keeps now's
// monotonic clock, so that a wall clock that is set back delays nothing.
func next(now time.Time, seed string, period time.Duration) time.Time {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))
	// The low bits of the sum are more even than the high ones; both count here.
	sum := h.Sum64()
	at := now.Truncate(period).Add(time.Duration((sum ^ sum>>32) % uint64(period)))
	if !at.After(now) {
		at = at.Add(period)
	}
	return now.Add(at.Sub(now))
}

// add begins with a key: at its moment, which the seed says, or soon.
func (s *schedule) add(key, seed string, soon bool, in lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
	i := &item{key: key, seed: seed, lane: in, index: -1}
	i.due = next(s.clock.Now(), seed, s.period)
	if soon {
		i.due = s.clock.Now()
	}
	s.items[key] = i
	s.push(i)
}

// hurry has a key checked soon, because it has changed. Moved says that what is asked
// is another endpoint, of which nothing is known.
func (s *schedule) hurry(key string, moved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.items[key]
	switch {
	case i == nil:
		return
	case i.running:
		i.soon, i.moved = true, i.moved || moved
		return
	case i.index < 0 && moved: // it waits already
		s.leave(i)
		i.lane = fresh
		s.waiting[fresh] = append(s.waiting[fresh], i)
		s.signal()
		return
	case i.index < 0:
		return
	}
	if moved {
		i.lane = fresh
	}
	if at := s.soonest(i); at.Before(i.due) {
		i.due = at
		heap.Fix(&s.queue, i.index)
		s.signal()
	}
}

// remove ends with a key. A check that is running ends by itself.
func (s *schedule) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
}

func (s *schedule) drop(key string) {
	if i := s.items[key]; i != nil {
		s.leave(i)
		if i.index >= 0 {
			heap.Remove(&s.queue, i.index)
		}
		delete(s.items, key)
	}
}

// leave takes an item out of those that wait for a place, if it is one of them.
func (s *schedule) leave(i *item) {
	if i.index >= 0 || i.running {
		return
	}
	s.waiting[i.lane] = slices.DeleteFunc(s.waiting[i.lane], func(other *item) bool { return other == i })
}

func (s *schedule) push(i *item) {
	heap.Push(&s.queue, i)
	s.signal()
}

func (s *schedule) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// soonest returns when a key may be checked again at the earliest.
func (s *schedule) soonest(i *item) time.Time {
	now, at := s.clock.Now(), i.last.Add(min(pause, s.period))
	if at.Before(now) {
		return now
	}
	return at
}

// run checks keys until ctx ends and the checks that are running have ended.
func (s *schedule) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		due, wait := s.take()
		for _, i := range due {
			running.Go(func() { s.do(ctx, i) })
		}
		if wait == 0 {
			wait = s.period // nothing is due: what is added wakes up
		}
		timer := s.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// take returns what is due and has got a place, and how long to wait for what is due
// next; 0 when there is none.
func (s *schedule) take() ([]*item, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var wait time.Duration
	for len(s.queue) > 0 && wait == 0 {
		first, now := s.queue[0], s.clock.Now()
		if first.due.After(now) {
			wait = first.due.Sub(now)
			continue
		}
		heap.Pop(&s.queue)
		s.waiting[first.lane] = append(s.waiting[first.lane], first)
	}
	var taken []*item
	for in := range lanes {
		n := min(s.free[in], len(s.waiting[in]))
		for _, i := range s.waiting[in][:n] {
			i.running = true
			taken = append(taken, i)
		}
		s.free[in] -= n
		s.waiting[in] = slices.Delete(s.waiting[in], 0, n)
	}
	return taken, wait
}

// do checks a key that has got a place, gives the place back, and puts the key back into
// the queue.
func (s *schedule) do(ctx context.Context, i *item) {
	s.mu.Lock()
	current := s.items[i.key] == i
	i.last = s.clock.Now()
	late := i.last.Sub(i.due)
	s.mu.Unlock()
	well := false
	if current {
		s.metrics.began(late)
		well = s.check(ctx, i.key)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.free[i.lane]++
	i.running = false
	s.signal()
	if s.items[i.key] != i {
		return // it was removed, or begun with again
	}
	i.lane = bad
	if well {
		i.lane = good
	}
	i.due = next(s.clock.Now(), i.seed, s.period)
	if i.soon {
		i.due = s.soonest(i)
	}
	if i.moved {
		i.lane = fresh
	}
	i.soon, i.moved = false, false
	s.push(i)
}

// queue is a heap of items by when they are due.
type queue []*item

func (q queue) Len() int           { return len(q) }
func (q queue) Less(a, b int) bool { return q[a].due.Before(q[b].due) }
func (q queue) Swap(a, b int) {
	q[a], q[b] = q[b], q[a]
	q[a].index, q[b].index = a, b
}

// Push is for package heap.
func (q *queue) Push(x any) {
	i := x.(*item)
	i.index = len(*q)
	*q = append(*q, i)
}

// Pop is for package heap.
func (q *queue) Pop() any {
	old := *q
	i := old[len(old)-1]
	i.index = -1
	*q = old[:len(old)-1]
	return i
}
