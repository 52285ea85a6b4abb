// Package lookuptest has a DNS server for tests.
package lookuptest

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
)

// Does is how a [Nameserver] takes questions.
type Does int

const (
	// Answer is to answer them.
	Answer Does = iota
	// Ignore is to be silent.
	Ignore
	// Fail is to say that it can't answer now.
	Fail
)

// Nameserver answers every question for an IPv4 address with the next one of a list, and
// the last one for ever. With an empty list, it says that there is no such name.
type Nameserver struct {
	mu        sync.Mutex
	does      Does
	addresses []netip.Addr
	answers   []netip.Addr
}

// New returns a nameserver with a list of addresses.
func New(addresses ...string) *Nameserver {
	n := &Nameserver{}
	for _, address := range addresses {
		n.addresses = append(n.addresses, netip.MustParseAddr(address))
	}
	return n
}

// Turn has it take questions in another way from now on.
func (n *Nameserver) Turn(does Does) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.does = does
}

// Answers returns the addresses that it has answered with.
func (n *Nameserver) Answers() []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.answers)
}

// Resolver starts the nameserver, and returns what asks it alone.
func (n *Nameserver) Resolver(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for buffer := make([]byte, 512); ; {
			size, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer := n.answer(buffer[:size]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// Everywhere has the whole process ask this nameserver alone until a test is over. Nothing else
// may resolve names meanwhile.
func (n *Nameserver) Everywhere(t *testing.T) {
	t.Helper()
	before := net.DefaultResolver
	net.DefaultResolver = n.Resolver(t)
	t.Cleanup(func() { net.DefaultResolver = before })
}

// answer returns the answer to a message with one question: RFC 1035, 4.1.
func (n *Nameserver) answer(query []byte) []byte {
	end := 12 // where the question's name begins
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	out := slices.Clone(query[:end+5])
	copy(out[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // an answer, with the question alone
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.does == Ignore:
		return nil
	case n.does == Fail:
		out[3] |= 2 // SERVFAIL
		return out
	case len(n.addresses) == 0:
		out[3] |= 3 // NXDOMAIN
		return out
	case kind != 1:
		return out
	}
	address := n.addresses[0]
	if len(n.addresses) > 1 {
		n.addresses = n.addresses[1:]
	}
	n.answers = append(n.answers, address)
	out[7] = 1
	out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4) // the name of the question, for no time
	return append(out, address.AsSlice()...)
}
