package health

import (
	"container/heap"
	"context"
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// pause is the least time between two checks of a cluster, however often it changes.
const pause = 5 * time.Second

// schedule has every key checked once in a period, each at its own moment, so that
// checks are spread evenly. Keys whose last check failed or was slow wait for places of
// their own, and so do new ones of which nothing good is known: they may last until a
// timeout, and would delay the others. A key that is being checked is
// not checked again before that has ended.
type schedule struct {
	clock  clock.Clock
	period time.Duration
	check  func(context.Context, string) bool
	// good and bad are the places for keys whose last check was good, and for others.
	good, bad chan struct{}
	metrics   *Metrics

	mu    sync.Mutex
	items map[string]*item
	queue queue
	// wake is signaled when something is due earlier than before.
	wake chan struct{}
}

// item is a key's place in the schedule.
type item struct {
	key, seed string
	due, last time.Time
	// bad says that its last check was not good.
	bad bool
	// index is its place in the queue; -1 while it is being checked.
	index int
	// soon says that it is to be checked at once when the running check has ended.
	soon bool
}

func newSchedule(c clock.Clock, period time.Duration, concurrency int, check func(context.Context, string) bool, metrics *Metrics) *schedule {
	return &schedule{
		clock: c, period: period, check: check, metrics: metrics,
		good: make(chan struct{}, concurrency), bad: make(chan struct{}, concurrency),
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

// add begins with a key: at its moment, which the seed says, or soon. Good says that its
// last check was, before this process began.
func (s *schedule) add(key, seed string, soon, good bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
	i := &item{key: key, seed: seed, bad: !good, index: -1}
	i.due = next(s.clock.Now(), seed, s.period)
	if soon {
		i.due = s.clock.Now()
	}
	s.items[key] = i
	s.push(i)
}

// hurry has a key checked soon, because it has changed.
func (s *schedule) hurry(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.items[key]
	if i == nil {
		return
	}
	if i.index < 0 {
		i.soon = true
		return
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
		if i.index >= 0 {
			heap.Remove(&s.queue, i.index)
		}
		delete(s.items, key)
	}
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

// take takes what is due off the queue, and returns how long to wait for the next; 0
// when there is none.
func (s *schedule) take() ([]*item, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []*item
	for len(s.queue) > 0 {
		first, now := s.queue[0], s.clock.Now()
		if first.due.After(now) {
			return due, first.due.Sub(now)
		}
		due = append(due, heap.Pop(&s.queue).(*item))
	}
	return due, 0
}

// do checks a key when there is a place for it, and puts it back into the queue.
func (s *schedule) do(ctx context.Context, i *item) {
	place := s.good
	s.mu.Lock()
	if i.bad {
		place = s.bad
	}
	s.mu.Unlock()
	select {
	case place <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-place }()
	s.mu.Lock()
	current := s.items[i.key] == i
	i.last = s.clock.Now()
	late := i.last.Sub(i.due)
	s.mu.Unlock()
	if !current {
		return
	}
	s.metrics.began(late)
	good := s.check(ctx, i.key)

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items[i.key] != i {
		return // it was removed, or begun with again
	}
	i.bad = !good
	i.due = next(s.clock.Now(), i.seed, s.period)
	if i.soon {
		i.soon, i.due = false, s.soonest(i)
	}
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
