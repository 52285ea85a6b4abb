package server

import (
	"slices"
	"sync"
)

// limit is a number of seats for requests in flight. A request takes one, a long
// list several.
//
// A user may have as many seats as are left free for all others. So one user alone
// gets half of them, two get a third each, and whoever comes next finds as many free
// as each of them has. What doesn't fit waits in the user's queue, and who has the
// fewest seats is served first. The same goes for places in the queues, of which
// there are as many as seats: what finds none is refused at once.
type limit struct {
	name string
	size int
	each int // the most seats that a user gets, however many are free

	mu      sync.Mutex
	joined  uint64 // requests, ever
	taken   int    // seats, of all users
	waiting int    // requests, of all users
	flows   map[string]*flow
}

// flow is what one user has of a limit. It is kept as long as that is anything.
type flow struct {
	taken int
	queue []*turn // the oldest first
}

// turn is that of one request.
type turn struct {
	user   string
	seats  int
	number uint64        // in the order of arrival
	come   chan struct{} // closed when the request has its seats
}

// newLimit returns a limit of a given size.
func newLimit(name string, size, each int) *limit {
	return &limit{name: name, size: size, each: each, flows: map[string]*flow{}}
}

// join returns the turn of a request, which may have come by then. It is nil if the
// request would have to wait and there is no place for it. Each turn ends with either
// withdraw or leave.
func (l *limit) join(user string, seats int) *turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.flows[user]
	if of == nil {
		of = &flow{}
		l.flows[user] = of
	}
	mine := &turn{user: user, seats: max(1, min(seats, l.each, l.size)), number: l.joined, come: make(chan struct{})}
	others, places := len(of.queue), l.size-l.waiting
	of.queue = append(of.queue, mine)
	l.joined++
	l.waiting++
	l.serve()
	if others >= places && l.remove(mine) {
		return nil
	}
	return mine
}

// withdraw gives a turn up unless it has come, and reports whether it did.
func (l *limit) withdraw(mine *turn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.remove(mine) {
		return false
	}
	// A wide request may have kept others behind it.
	l.serve()
	return true
}

// leave gives back the seats of a turn that had come.
func (l *limit) leave(mine *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.flows[mine.user]
	of.taken -= mine.seats
	l.taken -= mine.seats
	l.forget(mine.user)
	l.serve()
}

// serve gives free seats to those whose turn it is. What comes first and is too wide
// for now is not passed over: else it would wait for as long as there are others.
func (l *limit) serve() {
	for {
		of := l.next()
		if of == nil || of.taken+of.queue[0].seats > l.size-l.taken {
			return
		}
		first := of.queue[0]
		of.queue = slices.Delete(of.queue, 0, 1)
		l.waiting--
		of.taken += first.seats
		l.taken += first.seats
		close(first.come)
	}
}

// next returns the flow with the fewest seats of those that wait for others, the first
// to come of several. Who has all that a user gets waits for themselves alone.
func (l *limit) next() *flow {
	var next *flow
	for _, of := range l.flows {
		if len(of.queue) == 0 || of.taken+of.queue[0].seats > l.each {
			continue
		}
		if next == nil || of.taken < next.taken || of.taken == next.taken && of.queue[0].number < next.queue[0].number {
			next = of
		}
	}
	return next
}

// remove takes a turn that has not come out of its queue, and reports whether it was there.
func (l *limit) remove(mine *turn) bool {
	of := l.flows[mine.user]
	if of == nil {
		return false
	}
	at := slices.Index(of.queue, mine)
	if at < 0 {
		return false
	}
	of.queue = slices.Delete(of.queue, at, at+1)
	l.waiting--
	l.forget(mine.user)
	return true
}

// forget drops a flow that is nothing any more.
func (l *limit) forget(user string) {
	if of := l.flows[user]; of.taken == 0 && len(of.queue) == 0 {
		delete(l.flows, user)
	}
}
