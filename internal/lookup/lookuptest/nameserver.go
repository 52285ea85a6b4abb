// Package lookuptest has a DNS server for tests.
package lookuptest

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
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
	asked     int
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

// Asked returns how many questions it has been asked.
func (n *Nameserver) Asked() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// Resolver starts the nameserver, and returns what asks it alone.
func (n *Nameserver) Resolver(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.serve(t, conn)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// Listen starts the nameserver at the port of nameservers, and returns its address, which is one
// of this computer alone. Who may not use that port can't do this.
func (n *Nameserver) Listen(t *testing.T) netip.Addr {
	t.Helper()
	for range 100 {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 53, byte(rand.N(256)), byte(1 + rand.N(254))}), 53)
		conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", at.String())
		switch {
		case err == nil:
			n.serve(t, conn)
			return at.Addr()
		case !errors.Is(err, syscall.EADDRINUSE):
			t.Fatal(err)
		}
	}
	t.Fatal("port 53 is in use at every address of 127.53.0.0/16 that was tried: a DNS server of this computer may listen at all of them")
	return netip.Addr{}
}

func (n *Nameserver) serve(t *testing.T, conn net.PacketConn) {
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
	n.asked++
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
