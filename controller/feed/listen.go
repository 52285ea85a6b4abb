package feed

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// shown is the certificate that callers are shown, from two files that may be replaced, or come later.
type shown struct {
	certificate, key string
	clock            clock.PassiveClock

	mu   sync.Mutex
	now  *tls.Certificate
	read time.Time
	// err is why the files can't be read, and failed why there are no connections at all.
	err, failed error
}

// get returns the certificate; the last one that could be read, with an error, if there is one.
func (s *shown) get() (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read.IsZero() || s.clock.Since(s.read) >= look {
		s.read = s.clock.Now()
		pair, err := tls.LoadX509KeyPair(s.certificate, s.key)
		if s.err = err; err == nil {
			s.now = &pair
		}
	}
	return s.now, errors.Join(s.failed, s.err)
}

// fail notes why there are no connections, nil if there are.
func (s *shown) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
}

// handshake returns the certificate for a connection.
func (s *shown) handshake(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	now, err := s.get()
	if now != nil {
		return now, nil
	}
	return nil, fmt.Errorf("there is no certificate yet: %w", err)
}

// bounded is a listener that has few connections from one address.
type bounded struct {
	net.Listener

	mu sync.Mutex
	of map[string]int
}

// Accept implements net.Listener. It ends connections beyond those that an address may have.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		connection, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := source(connection.RemoteAddr().String())
		if b.take(from) {
			return &counted{Conn: connection, left: sync.OnceFunc(func() { b.leave(from) })}, nil
		}
		_ = connection.Close()
	}
}

func (b *bounded) take(from string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[from] >= connectionsOf {
		return false
	}
	b.of[from]++
	return true
}

func (b *bounded) leave(from string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[from]--; b.of[from] == 0 {
		delete(b.of, from)
	}
}

// counted is a connection of a bounded listener.
type counted struct {
	net.Conn
	left func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.left()
	return c.Conn.Close()
}

// source is from where a remote address is: of IPv6, the network, of which one machine may have all.
func source(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return host
}

// panics logs what a server says of its own faults, and nothing else: anyone who connects would fill the
// log.
type panics struct{}

// Write implements io.Writer.
func (panics) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte("http: panic serving")) {
		klog.ErrorS(nil, "A request could not be answered", "panic", string(line))
	}
	return len(line), nil
}
