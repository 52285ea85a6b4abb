package snapshot

import (
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/internal/etcdclient"
)

// Etcd is how to reach an etcd.
type Etcd struct {
	// Endpoints are the URLs of its members for clients, such as
	// https://etcd-0.etcd:2379.
	Endpoints []string
	etcdclient.Files
}

// config returns the configuration of a client of one member that notices when the
// member is cut off. Why a connection can't be made or breaks is reported to failed.
func (e Etcd) config(endpoint string, failed func(error)) (clientv3.Config, error) {
	trust, err := e.TLS()
	if err != nil {
		return clientv3.Config{}, err
	}
	config, err := etcdclient.Member{URL: endpoint, TLS: trust}.Config(failed)
	config.DialKeepAliveTime, config.DialKeepAliveTimeout = 10*time.Second, 10*time.Second
	// Reads are asked again while the members elect a leader.
	config.MaxUnaryRetries, config.BackoffWaitBetween = 10, time.Second
	return config, err
}
