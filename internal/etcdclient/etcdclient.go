// Package etcdclient configures clients of single etcd members that say why a member
// can't be reached. etcd's own client tries again until its time is up, and then
// often says no more than that.
package etcdclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/clusterregistry/operator/internal/lookup"
)

// Member is how to reach one etcd member.
type Member struct {
	// URL is where the member serves clients, such as https://etcd-0.etcd:2379. The
	// host is also the name that the member's certificate must be valid for.
	URL string
	// Address is where to find the member, host and port. When it is empty, the host of
	// the URL is looked up in DNS.
	Address string
	// TLS has the client certificate and the CA of the members.
	TLS *tls.Config
	// Dial connects to the member, the handshake included; nil for TLS over TCP.
	Dial func(ctx context.Context, member Member) (net.Conn, error)
	// Lookup follows the lookups in DNS; nil where no one asks about them.
	Lookup *lookup.Lookup
}

// Config returns the configuration of a client of the member that makes a single
// attempt of each call. Why a connection can't be made or breaks is reported to
// failed, possibly more than once and from several goroutines.
func (m Member) Config(failed func(error)) (clientv3.Config, error) {
	endpoint, err := url.Parse(m.URL)
	if err != nil {
		return clientv3.Config{}, err
	}
	if endpoint.Scheme != "https" || endpoint.Port() == "" {
		return clientv3.Config{}, errors.New("it is not a URL such as https://etcd-0.etcd:2379")
	}
	dial := m.Dial
	if dial == nil {
		dialer := &tls.Dialer{Config: cmp.Or(m.TLS, &tls.Config{}).Clone()}
		dialer.Config.NextProtos, dialer.Config.ServerName = []string{"h2"}, endpoint.Hostname()
		dial = func(ctx context.Context, m Member) (net.Conn, error) {
			if m.Lookup != nil {
				ctx = m.Lookup.Trace(ctx)
			}
			return dialer.DialContext(ctx, "tcp", cmp.Or(m.Address, endpoint.Host))
		}
	}
	return clientv3.Config{
		// Without https the client leaves TLS to the dialer.
		Endpoints:       []string{endpoint.Host},
		MaxUnaryRetries: 1,
		Logger:          zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := dial(ctx, m)
			if err != nil {
				failed(err)
				return nil, err
			}
			return witness{conn, failed}, nil
		})},
	}, nil
}

// witness reports why a connection broke. In TLS 1.3 a server refuses a client's
// certificate only after the handshake.
type witness struct {
	net.Conn
	failed func(error)
}

func (w witness) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		w.failed(err)
	}
	return n, err
}

// Write may fail before the refusal is read that came ahead of the failure.
func (w witness) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		_, _ = io.Copy(io.Discard, w) // Read reports what it finds
	}
	return n, err
}
