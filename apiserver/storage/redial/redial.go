// Package redial connects servers to etcd, and again within seconds once it can be reached.
//
// The library that etcd's client connects with waits longer after each attempt that failed, for
// two minutes in the end, and the storage of an API server does not let that be changed. While
// etcd, or DNS with its name, was away for minutes, servers would be without it for as long
// after its return. What can be decided here is how long an attempt takes, and the library does
// not wait longer for attempts that it has not made.
package redial

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
)

const (
	// pause is between two attempts to connect, and limit how long one may take.
	pause = time.Second
	limit = 10 * time.Second
)

// Lookup is for the transport of a storage, of which each client gets a dialer of its own. All
// end with stop.
func Lookup(stop <-chan struct{}) egressselector.Lookup {
	return func(egressselector.NetworkContext) (utilnet.DialFunc, error) {
		return newDialer((&net.Dialer{}).DialContext, stop).dial, nil
	}
}

// dialer connects one client.
type dialer struct {
	connect utilnet.DialFunc
	stop    <-chan struct{}

	mu sync.Mutex
	// failing are the addresses that could not be reached last.
	failing map[string]bool
}

func newDialer(connect utilnet.DialFunc, stop <-chan struct{}) *dialer {
	return &dialer{connect: connect, stop: stop, failing: map[string]bool{}}
}

// dial connects to an address. The first failure is returned at once, by which requests fail
// that need the connection, and not by their time; they still do while the next attempt lasts.
// That one ends when the address can be reached, whatever the time that it was given: if it is
// over by then, the library makes another attempt a moment later, which succeeds.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.attempt(ctx, network, address)
	if err == nil || !d.failed(address) {
		return conn, err
	}
	// A context that has expired no longer says that its client was closed.
	canceled := ctx.Done()
	for {
		select {
		case <-d.stop:
			return nil, err
		case <-canceled:
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			canceled = nil
		case <-time.After(pause):
			if conn, err = d.attempt(context.WithoutCancel(ctx), network, address); err != nil {
				continue
			}
			if ctx.Err() != nil {
				_ = conn.Close() // no one has it
				return nil, ctx.Err()
			}
			return conn, nil
		}
	}
}

// failed notes that an address can't be reached, and reports whether that was known.
func (d *dialer) failed(address string) (known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known = d.failing[address]
	d.failing[address] = true
	return known
}

// attempt connects once. An address that was reached is not failing.
func (d *dialer) attempt(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := d.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.failing, address)
	return conn, nil
}
