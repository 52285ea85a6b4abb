package health

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// patience is how long an address may take: a refusal comes at once.
const patience = time.Second

// Met is what one meets at an address who opens a connection.
type Met int

const (
	// Answers is someone who takes the connection.
	Answers Met = iota
	// Refuses is a refusal, as of a node until it has opened a Service's port.
	Refuses
	// Silent is no answer: the address is unknown here, no way leads there, or nothing comes
	// back. Clients may know a way.
	Silent
)

// Dial connects to an address, host and port, of which it resolves the host if that is a name.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Meet opens a connection to an address, host and port; a nil Dial does so by TCP. The error says why
// it is not taken.
func (dial Dial) Meet(ctx context.Context, address string) (Met, error) {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	connection, err := dial(ctx, "tcp", address)
	switch {
	case err == nil:
		_ = connection.Close()
		return Answers, nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refuses, err
	}
	return Silent, err
}
