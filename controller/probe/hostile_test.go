package probe

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// hurried is local with less patience, for servers that never end, and enough for those
// that answer on a busy computer.
var hurried = &Prober{loopback: true, timeout: 5 * time.Second}

// within fails when a probe does not return long after its timeout.
func within(t *testing.T, endpoint Target) Result {
	t.Helper()
	done := make(chan Result, 1)
	go func() { done <- hurried.Probe(t.Context(), endpoint) }()
	select {
	case result := <-done:
		return result
	case <-time.After(time.Minute):
		t.Fatal("the probe hangs")
		return Result{}
	}
}

// hold keeps a connection open until the test ends, after it has sent a text.
func hold(t *testing.T, text string) http.HandlerFunc {
	ended := t.Context().Done()
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(conn, text)
		<-ended
		_ = conn.Close()
	}
}

// TestSwitchedProtocols has a server that answers 101 and then leaves the connection
// open: it gets no more of this program's time than others.
func TestSwitchedProtocols(t *testing.T) {
	ca := newAuthority(t)
	for _, path := range []string{"/readyz", "/version"} {
		hostile := hold(t, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		endpoint := serve(t, ca.issue(leaf()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				hostile(w, r)
			}
		}))
		endpoint.CABundle = ca.pem()
		want := map[string]Outcome{"/readyz": Unexpected, "/version": Ready}[path]
		if got := within(t, Target{Endpoint: endpoint}); got.Outcome != want || got.Version != "" {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// TestStalledVersion has an API server that is ready and never ends its version.
func TestStalledVersion(t *testing.T) {
	ca := newAuthority(t)
	stalled := hold(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
	endpoint := serve(t, ca.issue(leaf()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			stalled(w, r)
		}
	}))
	endpoint.CABundle = ca.pem()
	if got := within(t, Target{Endpoint: endpoint}); got.Outcome != Ready || got.Version != "" {
		t.Errorf("%+v", got)
	}
}

// TestConnectionsHaveTheDeadline expects that a connection ends with the probe, whatever
// Go makes of it.
func TestConnectionsHaveTheDeadline(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	conn, err := local.transport(Target{}, nil, nil, time.Now().Add(time.Millisecond)).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	read := make(chan error, 1)
	go func() { _, err := conn.Read(make([]byte, 1)); read <- err }()
	select {
	case err := <-read:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the connection has no deadline")
	}
}

// costlyCA returns a CA with an RSA key of 16384 bits, in PEM. No one has its private
// key, which would take minutes to make: another key has signed it.
func costlyCA(t *testing.T) []byte {
	t.Helper()
	signer := newAuthority(t)
	n := new(big.Int).Lsh(big.NewInt(1), 16383)
	n.SetBit(n, 0, 1)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "costly"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.cert, &rsa.PublicKey{N: n, E: 65537}, signer.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
