package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	genericserver "k8s.io/apiserver/pkg/server"
)

// network is a network in memory, whose time is that of a synctest bubble.
type network struct {
	latency time.Duration
	dialed  chan net.Conn
	closed  chan struct{}
}

func newNetwork(latency time.Duration) *network {
	return &network{latency: latency, dialed: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept, Close and Addr make it a listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case conn := <-n.dialed:
		return conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	close(n.closed)
	return nil
}

func (*network) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects to whoever accepts. What either end sends, the end of the
// connection too, takes a while to reach the other.
func (n *network) dial() net.Conn {
	client, toServer := net.Pipe()
	server, toClient := net.Pipe()
	go n.carry(toServer, toClient)
	go n.carry(toClient, toServer)
	n.dialed <- server
	return client
}

func (n *network) carry(from, to net.Conn) {
	type packet struct {
		data []byte
		due  time.Time
	}
	wire := make(chan packet, 1000)
	go func() {
		defer close(wire)
		for {
			data := make([]byte, 16<<10)
			k, err := from.Read(data)
			if err != nil {
				wire <- packet{nil, time.Now().Add(n.latency)}
				return
			}
			wire <- packet{data[:k], time.Now().Add(n.latency)}
		}
	}()
	for p := range wire {
		time.Sleep(time.Until(p.due))
		if p.data == nil {
			break
		}
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close()
	for range wire {
	}
}

// serve runs a server as k8s.io/apiserver sets it up, which answers everything
// at once. It returns what stops it.
func (n *network) serve(t *testing.T, listener net.Listener) (stop func()) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	answer := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	server := &http.Server{
		Handler: answer, TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12},
		// As SecureServingInfo.Serve has them, which leaves no other way to its server.
		IdleTimeout: 90 * time.Second, ReadHeaderTimeout: 32 * time.Second,
	}
	ordered := make(chan struct{})
	stopped, _, err := genericserver.RunServer(server, listener, time.Minute, ordered)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		close(ordered)
		<-stopped
	}
}

var anyServer = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the server is the test's own

// TestSpareConnections looks at when the server closes a connection that does
// nothing more.
func TestSpareConnections(t *testing.T) {
	request := "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	send := func(conn net.Conn, text string) {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Error(err)
		}
	}
	answered := func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 4096)); err != nil {
			t.Error(err)
		}
	}
	const header = 32 * time.Second
	for _, test := range []struct {
		reason string
		raw    bool // without TLS
		max    int64
		do     func(net.Conn)
		want   time.Duration // since then
	}{
		{"nothing was sent", false, 1, func(net.Conn) {}, spareTime},
		{"nothing was sent, and others are spare", false, 0, func(net.Conn) {}, header},
		{"no handshake", true, 1, func(net.Conn) {}, header},
		{"a handshake that began", true, 1, func(conn net.Conn) { send(conn, "\x16\x03\x01") }, header},
		{"a header that began late", false, 1, func(conn net.Conn) {
			time.Sleep(time.Minute)
			send(conn, request[:10])
		}, header},
		{"a header that goes on and on", false, 1, func(conn net.Conn) {
			send(conn, request[:10])
			time.Sleep(header - time.Second)
			send(conn, "x")
		}, time.Second},
		{"a request was answered", false, 1, func(conn net.Conn) {
			send(conn, request)
			answered(conn)
		}, spareTime},
		{"a request was answered, and others are spare", false, 0, func(conn net.Conn) {
			send(conn, request)
			answered(conn)
		}, 90 * time.Second},
		{"the next header began", false, 1, func(conn net.Conn) {
			send(conn, request)
			answered(conn)
			time.Sleep(100 * time.Second)
			send(conn, request[:10])
		}, header},
		{"requests long apart", false, 1, func(conn net.Conn) {
			for range 5 {
				time.Sleep(spareTime - time.Second)
				send(conn, request)
				answered(conn)
			}
		}, spareTime},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(0)
				serving := &genericserver.SecureServingInfo{Listener: n}
				keepSpare(serving)
				listener := serving.Listener.(*spareListener)
				listener.max = test.max
				defer n.serve(t, listener)()
				conn := n.dial()
				if !test.raw {
					secured := tls.Client(conn, anyServer)
					if err := secured.HandshakeContext(t.Context()); err != nil {
						t.Fatal(err)
					}
					conn = secured
				}
				test.do(conn)
				since := time.Now()
				_, _ = io.Copy(io.Discard, conn)
				if got := time.Since(since).Round(time.Second); got != test.want {
					t.Errorf("closed after %s, want %s", got, test.want)
				}
				_ = conn.Close()
				synctest.Wait()
				if left := listener.spare.Load(); left != 0 {
					t.Errorf("%d connections count as spare still", left)
				}
			})
		})
	}
}

// TestSpareConnectionsFailNoRequest is a model of the host's aggregator in front
// of a server: requests with a body, sent at about the time when the server closes
// the connections that earlier ones have left.
func TestSpareConnectionsFailNoRequest(t *testing.T) {
	const rounds, latency = 101, 5 * time.Millisecond
	for _, test := range []struct {
		reason string
		apart  time.Duration
		before []int // so many requests at once, one lot after the other
	}{
		// The second of two finds the connection of the first in use and opens
		// another, but that takes longer than the first one's answer.
		{"never used", 32 * time.Second, []int{1, 2}},
		{"used before", 90 * time.Second, []int{2}},
	} {
		for _, kept := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(latency)
				serving := &genericserver.SecureServingInfo{Listener: n}
				if kept {
					keepSpare(serving)
				}
				stop, proxy := n.serve(t, serving.Listener), n.proxy()
				failed := 0
				for i := range rounds {
					for _, requests := range test.before {
						failed += post(t, proxy, requests)
					}
					// Evenly around the time, a tenth of a second to either side.
					time.Sleep(test.apart + time.Duration(2*i-rounds)*time.Millisecond)
					failed += post(t, proxy, 2)
					time.Sleep(10 * time.Minute) // until no connection is left
				}
				t.Logf("connections that were %s, %s later, kept for longer than the proxy does: %t: %d of %d requests failed", test.reason, test.apart, kept, failed, 2*rounds)
				if kept && failed > 0 {
					t.Errorf("%d requests failed", failed)
				}
				if !kept && failed == 0 {
					t.Error("the model doesn't show the fault that is to be mended")
				}
				stop()
				time.Sleep(10 * time.Minute) // until nothing is on its way any more
			})
		}
	}
}

// proxy returns a client with the aggregator's times.
func (n *network) proxy() *http.Transport {
	return &http.Transport{
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return n.dial(), nil },
		TLSClientConfig: anyServer, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 25,
	}
}

// post sends so many requests at once and returns how many failed.
func post(t *testing.T, through http.RoundTripper, requests int) (failed int) {
	one := func() error {
		// A body of this type can't be sent again.
		body := io.MultiReader(strings.NewReader("body"))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://registry/", body)
		if err != nil {
			return err
		}
		response, err := through.RoundTrip(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		return errors.Join(err, response.Body.Close())
	}
	results := make(chan error)
	for range requests {
		go func() { results <- one() }()
	}
	for range requests {
		if err := <-results; err != nil {
			failed++
		}
	}
	return failed
}
