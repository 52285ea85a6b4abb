package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// stalled is how long a connection may be open without a byte that is read or written.
const stalled = 2 * time.Minute

// http returns the client of an endpoint.
func (c Config) http() (*http.Client, error) {
	configure, err := c.transport()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	configure(transport)
	return &http.Client{Transport: transport}, nil
}

// transport returns what sets up a client's connections to an endpoint. They have no limit
// of time for a transfer, which may be a long one, but for one that stands still.
func (c Config) transport() (configure func(*http.Transport), err error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		content, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA of the store: %w", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("there is no PEM certificate in %s, the CA of the store", c.CAFile)
		}
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return func(t *http.Transport) {
		t.TLSClientConfig, t.ResponseHeaderTimeout = trust.Clone(), cmp.Or(c.patience, answering)
		t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return watched{conn, cmp.Or(c.patience, stalled)}, nil
		}
	}, nil
}

// watched is a connection that breaks when it stands still. While a request is written its
// answer is awaited, and so what moves in one direction counts for both.
type watched struct {
	net.Conn
	most time.Duration
}

func (w watched) Read(p []byte) (int, error) {
	if err := w.SetDeadline(time.Now().Add(w.most)); err != nil {
		return 0, err
	}
	return w.Conn.Read(p)
}

func (w watched) Write(p []byte) (int, error) {
	if err := w.SetDeadline(time.Now().Add(w.most)); err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}
