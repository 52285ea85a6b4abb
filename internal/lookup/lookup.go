// Package lookup decides whether a connection fails because its name is not resolved.
package lookup

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// Lookup knows whether someone waits for DNS. When the time is up meanwhile, what makes the
// connection returns an error of its own, which does not say that. The zero value is ready to use.
type Lookup struct{ pending atomic.Bool }

// Trace returns a context for connections whose lookups are followed.
func (l *Lookup) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { l.pending.Store(true) },
		// One that failed as the time was up counts, too: net/http returns the context's error
		// instead of its own.
		DNSDone: func(done httptrace.DNSDoneInfo) { l.pending.Store(done.Err != nil) },
	})
}

// Explain returns the error of a connection to a host as it would be had DNS said itself that it
// takes too long, unless whoever asked for it needs it no more.
func (l *Lookup) Explain(err error, host string) error {
	if err == nil || errors.Is(err, context.Canceled) || Failed(err) || !l.pending.Load() {
		return err
	}
	return &net.DNSError{UnwrapErr: err, Err: err.Error(), Name: host, IsTimeout: true}
}

// Failed reports whether an error is that of a name which was not resolved.
func Failed(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns)
}

// Advice is what to do about a name that the operator does not get resolved.
const Advice = "check the record of this name, and the host cluster's DNS"
