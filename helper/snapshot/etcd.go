package snapshot

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Etcd is how to reach an etcd.
type Etcd struct {
	// Endpoints are the URLs of its members for clients, such as
	// https://etcd-0.etcd:2379.
	Endpoints []string
	// CA, Cert and Key are files in PEM: who signs the members' certificates, and
	// the client's own pair.
	CA, Cert, Key string
}

// config returns the configuration of a client of one member that makes a
// single attempt of each call, and notices when the member is cut off. Why a
// connection can't be made or breaks is told to failed, which the client's own
// errors hide.
func (e Etcd) config(endpoint string, failed func(error)) (clientv3.Config, error) {
	at, err := url.Parse(endpoint)
	if err != nil {
		return clientv3.Config{}, err
	}
	if at.Scheme != "https" || at.Port() == "" {
		return clientv3.Config{}, errors.New("it is no URL such as https://etcd-0.etcd:2379")
	}
	dialer := &tls.Dialer{}
	if dialer.Config, err = e.tls(); err != nil {
		return clientv3.Config{}, err
	}
	dialer.Config.ServerName = at.Hostname()
	return clientv3.Config{
		// Without https the client leaves TLS to the dialer.
		Endpoints:            []string{at.Host},
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 10 * time.Second,
		MaxUnaryRetries:      1,
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				failed(err)
				return nil, err
			}
			return watched{conn, failed}, nil
		})},
	}, nil
}

func (e Etcd) tls() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(e.Cert, e.Key)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate for etcd: %w", err)
	}
	ca, err := os.ReadFile(e.CA)
	if err != nil {
		return nil, fmt.Errorf("read the CA of etcd: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("read the CA of etcd: there is no certificate in PEM in %s", e.CA)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}, nil
}

// watched tells why a connection broke. In TLS 1.3 a server refuses a client's
// certificate only after the handshake.
type watched struct {
	net.Conn
	failed func(error)
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		w.failed(err)
	}
	return n, err
}
