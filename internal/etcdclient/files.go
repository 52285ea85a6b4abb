package etcdclient

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Files are what a client of an etcd is made from, in PEM: who signs the members'
// certificates, and the client's own pair.
type Files struct{ CA, Cert, Key string }

// TLS reads the files.
func (f Files) TLS() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate for etcd: %w", err)
	}
	ca, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("read the CA of etcd: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("read the CA of etcd: there is no PEM certificate in %s", f.CA)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}
