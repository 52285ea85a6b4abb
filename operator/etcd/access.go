// Package etcd asks a running etcd how it is, and decides by that what may be
// done to it. What it asks is bounded in time; what it decides is a pure
// function of a State. It knows nothing of Kubernetes.
package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/internal/etcdclient"
	"github.com/clusterregistry/operator/internal/lookup"
)

// Access is how to reach the members of an etcd.
type Access struct {
	// Endpoints are the members' URLs for clients, such as
	// https://etcd-0.etcd:2379, by the members' names. The host is also the name
	// that the member's certificate must be valid for.
	Endpoints map[string]string
	// Addresses are where to find members, host and port, by name. One that is not
	// there is looked up in DNS, which may be behind when a member has moved.
	Addresses map[string]string
	// TLS has the client certificate and the CA of the members.
	TLS *tls.Config
	// Dial connects to a member, as in etcdclient.Member; nil for TLS over TCP.
	Dial func(context.Context, etcdclient.Member) (net.Conn, error)
	// Timeout bounds what one member is asked; zero means 3 s.
	Timeout time.Duration
}

// maxAnswer bounds what a member answers to one call, in bytes. The largest object
// that it stores by default has 1.5 MiB.
const maxAnswer = 32 << 20

// call lets do talk to one member, and to no other. The error says which member
// it is and what really keeps it from answering.
func (a Access) call(ctx context.Context, name string, do func(context.Context, *clientv3.Client) error) error {
	timeout := cmp.Or(a.Timeout, 3*time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, timeoutError(timeout))
	defer cancel()
	// A connection that fails ends the call: the client would continue trying,
	// and then say no more than that its time is up.
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	names := &lookup.Lookup{}
	err := a.dial(name, names, fail, func(client *clientv3.Client) error {
		err := do(ctx, client)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return because(err, names.Explain(cause, host(a.Endpoints[name])))
		}
		return err
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("member %s (%s) %s: %w", name, a.Endpoints[name], explain(err), err)
}

// host returns the host of an endpoint that is dialed.
func host(endpoint string) string {
	at, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	return at.Hostname()
}

// dial gives use a client of one member that makes a single attempt of each
// call. Why a connection can't be made or breaks is told to failed, which the
// client's own errors often hide.
func (a Access) dial(name string, names *lookup.Lookup, failed func(error), use func(*clientv3.Client) error) error {
	config, err := etcdclient.Member{URL: a.Endpoints[name], Address: a.Addresses[name], TLS: a.TLS, Dial: a.Dial, Lookup: names}.Config(failed)
	if err != nil {
		return err
	}
	config.MaxCallRecvMsgSize = maxAnswer // an external etcd is anyone's
	client, err := clientv3.New(config)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all that it was for is done
	return use(client)
}
