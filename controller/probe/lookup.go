package probe

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// lookup knows whether a probe waits for DNS. When its time is up meanwhile, net/http
// returns the error of the context, which does not say that.
type lookup struct{ pending atomic.Bool }

// trace returns a context for requests whose lookups are followed.
func (l *lookup) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { l.pending.Store(true) },
		// One that failed as the time was up counts, too: net/http returns the context's error
		// instead of its own.
		DNSDone: func(done httptrace.DNSDoneInfo) { l.pending.Store(done.Err != nil) },
	})
}

// explain returns the error of a request to a host, directly or by way of a proxy, as it
// would be had DNS said itself that it takes too long.
func (l *lookup) explain(err error, host string, proxied bool) error {
	var dns *net.DNSError
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &dns) || !l.pending.Load() {
		return err
	}
	silent := &net.DNSError{UnwrapErr: err, Err: err.Error(), Name: host, IsTimeout: true}
	if proxied {
		return &net.OpError{Op: "proxyconnect", Net: "tcp", Err: silent} // as net/http has it
	}
	return silent
}
