package snapshot

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/internal/etcdclient"
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

// config returns the configuration of a client of one member that notices when the
// member is cut off. Why a connection can't be made or breaks is reported to failed.
func (e Etcd) config(endpoint string, failed func(error)) (clientv3.Config, error) {
	trust, err := e.tls()
	if err != nil {
		return clientv3.Config{}, err
	}
	config, err := etcdclient.Member{URL: endpoint, TLS: trust}.Config(failed)
	config.DialKeepAliveTime, config.DialKeepAliveTimeout = 10*time.Second, 10*time.Second
	return config, err
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
		return nil, fmt.Errorf("read the CA of etcd: there is no PEM certificate in %s", e.CA)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}
