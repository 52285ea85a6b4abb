package server

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	genericserver "k8s.io/apiserver/pkg/server"
)

const (
	// spareTime is how long a connection may be silent between requests, or before
	// the first. It is well above the 90 s for which Go's clients, the host's
	// aggregator among them, keep a connection that they have no use for: who
	// closes first never sends a request into a connection that is being closed.
	spareTime = 2 * time.Minute
	// maxSpare is how many connections may be silent for that long at a time.
	// Others keep the server's own times, so that strangers can't collect them.
	maxSpare = 2000
)

// keepSpare makes the server keep connections that are of no use at the moment
// for longer than its clients do.
//
// k8s.io/apiserver closes a connection that has been used after 90 s without a
// request, which is when the host's aggregator stops using it, and one that was
// never used after 32 s, for it takes the wait for a request's first byte to be
// a part of reading its header. The aggregator makes such connections: it opens
// one for each request that finds none free, and when another gets free first,
// keeps the new one for later. A request that it sends while the server closes
// fails if it has a body, which can't be sent twice.
func keepSpare(serving *genericserver.SecureServingInfo) {
	serving.Listener = &spareListener{Listener: serving.Listener, time: spareTime, max: maxSpare}
}

// spareListener accepts connections that wait for long for a request to begin,
// and for nothing else: a TLS handshake and a header that has begun have the
// time that the server gives them.
type spareListener struct {
	net.Listener
	time  time.Duration
	max   int64
	spare atomic.Int64
}

// Accept waits for a connection.
func (l *spareListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &spareConn{Conn: conn, listener: l}, nil
}

// spareConn is a connection below its TLS. It learns from the deadlines that an
// http.Server sets what that waits for: the first one is for the handshake, which
// ends when it is taken away; the others are for a request, and as long as
// nothing of that has come since the last answer, the connection is spare.
type spareConn struct {
	net.Conn
	listener *spareListener

	mu sync.Mutex
	// established says that the handshake is over; silent, that nothing has come
	// since then or since the last answer.
	established, silent, closed bool
	// granted is the time that the server gave, while the connection has more.
	granted time.Duration
}

// SetReadDeadline grants more time than it is told if it is for a request of which
// nothing has come yet.
func (c *spareConn) SetReadDeadline(deadline time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveBack()
	now := time.Now()
	if deadline.IsZero() && !c.established {
		c.established, c.silent = true, true
	}
	// A deadline in the past is how an http.Server ends a read of its own.
	if c.silent && !c.closed && deadline.After(now) && deadline.Before(now.Add(c.listener.time)) && c.listener.take() {
		c.granted = deadline.Sub(now)
		deadline = now.Add(c.listener.time)
	}
	return c.Conn.SetReadDeadline(deadline)
}

// Read gives what begins with its first byte the time that the server gave.
func (c *spareConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 {
		return n, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = false
	if granted := c.giveBack(); granted > 0 {
		// The bytes are there, whatever becomes of the deadline.
		_ = c.Conn.SetReadDeadline(time.Now().Add(granted))
	}
	return n, err
}

// Write is for an answer, after which the connection waits for the next request.
func (c *spareConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.silent = c.established
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// Close ends the connection.
func (c *spareConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.giveBack()
	c.mu.Unlock()
	return c.Conn.Close()
}

// giveBack ends the time that was granted beyond the server's own, which it
// returns; 0 means that there was none.
func (c *spareConn) giveBack() time.Duration {
	granted := c.granted
	if granted > 0 {
		c.listener.spare.Add(-1)
	}
	c.granted = 0
	return granted
}

// take reports whether one more connection may be spare.
func (l *spareListener) take() bool {
	if l.spare.Add(1) <= l.max {
		return true
	}
	l.spare.Add(-1)
	return false
}
