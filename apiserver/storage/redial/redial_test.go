package redial

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// etcd answers reads with nothing, through connections in memory, of which there are none while
// it, or its name, is away.
type etcd struct {
	etcdserverpb.UnimplementedKVServer

	accepted chan net.Conn
	closed   chan struct{}

	mu    sync.Mutex
	away  bool
	conns []net.Conn
	dials int
}

func (*etcd) Range(context.Context, *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
}

// Accept implements net.Listener.
func (e *etcd) Accept() (net.Conn, error) {
	select {
	case conn := <-e.accepted:
		return conn, nil
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (e *etcd) Close() error { close(e.closed); return nil }

// Addr implements net.Listener.
func (*etcd) Addr() net.Addr { return &net.TCPAddr{} }

var errNotFound = &net.DNSError{Err: "no such host", Name: "etcd-0.etcd", IsNotFound: true}

func (e *etcd) connect(context.Context, string, string) (net.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dials++; e.away {
		return nil, errNotFound
	}
	ours, theirs := net.Pipe()
	e.conns = append(e.conns, theirs)
	e.accepted <- theirs
	return ours, nil
}

// leave breaks all connections, or has new ones be made.
func (e *etcd) leave(away bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.away = away
	for _, conn := range e.conns {
		_ = conn.Close()
	}
	e.conns = nil
}

// client returns a client of etcd, as a storage has one.
func client(t *testing.T, dial utilnet.DialFunc) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://etcd-0.etcd:2379"}, DialTimeout: 20 * time.Second, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) })}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// reached reads once.
func reached(t *testing.T, c *clientv3.Client) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := c.Get(ctx, "any")
	return err == nil
}

// TestAway has DNS, and with it etcd, be away for as long as it takes to wait longest: a client
// is connected within seconds of its return, and meanwhile requests do not wait for a connection.
func TestAway(t *testing.T) {
	for _, outage := range []time.Duration{20 * time.Second, 5 * time.Minute, 3 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			e := &etcd{accepted: make(chan net.Conn, 10), closed: make(chan struct{})}
			server := grpc.NewServer()
			etcdserverpb.RegisterKVServer(server, e)
			go func() { _ = server.Serve(e) }() // it says that it was closed
			stop := make(chan struct{})
			c := client(t, newDialer(e.connect, stop).dial)
			if !reached(t, c) {
				t.Fatal("it is not reached at first")
			}
			e.leave(true)
			dials := e.dials
			for left := time.Now().Add(outage); time.Now().Before(left); {
				if time.Sleep(10 * time.Second); reached(t, c) { // or the library would let go of a connection that no one needs
					t.Fatal("it is reached, and is away")
				}
			}
			if state := c.ActiveConnection().GetState(); state != connectivity.TransientFailure {
				t.Errorf("after %s the connection is %s, in which requests wait", outage, state)
			}
			if made := e.dials - dials; made > int(outage/pause)+30 {
				t.Errorf("in %s there were %d attempts to connect", outage, made)
			}
			e.leave(false)
			back := time.Now()
			for !reached(t, c) {
				time.Sleep(100 * time.Millisecond)
			}
			if took := time.Since(back); took > 10*time.Second {
				t.Errorf("after an outage of %s it is reached %s after its return", outage, took)
			}
			close(stop)
			_ = c.Close()
			server.Stop()
		})
	}
}

// TestEnd has attempts that last end when their client is closed, and when the server ends. What
// was connected too late is closed.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &etcd{accepted: make(chan net.Conn, 10), closed: make(chan struct{}), away: true}
		stop := make(chan struct{})
		d := newDialer(e.connect, stop)
		if _, err := d.dial(t.Context(), "tcp", "a"); !errors.Is(err, errNotFound) {
			t.Errorf("the first attempt: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := d.dial(ctx, "tcp", "a"); ended <- err }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("its client was closed: %v", err)
		}
		expires, done := context.WithTimeout(t.Context(), 20*time.Second)
		defer done()
		go func() { _, err := d.dial(expires, "tcp", "a"); ended <- err }()
		time.Sleep(time.Hour)
		if len(ended) > 0 {
			t.Errorf("it has ended before the address can be reached: %v", <-ended)
		}
		e.leave(false)
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it is reached too late: %v", err)
		}
		if _, err := (<-e.accepted).Read([]byte{0}); err == nil {
			t.Error("a connection that no one has is open")
		}
		conn, err := d.dial(t.Context(), "tcp", "a")
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		e.leave(true)
		_, first := d.dial(t.Context(), "tcp", "a")
		go func() { _, err := d.dial(t.Context(), "tcp", "a"); ended <- err }()
		synctest.Wait()
		close(stop)
		if errs := []error{first, <-ended}; !slices.Equal(errs, []error{errNotFound, errNotFound}) {
			t.Errorf("it failed again, and the server has ended: %v", errs)
		}
	})
}
