package clusterregistry

import (
	"context"
	"net"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/internal/etcdclient"
	"github.com/clusterregistry/operator/operator/available"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/handshake"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/issuance"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation/keychange"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/permission"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/stage/backups"
	"github.com/clusterregistry/operator/operator/stage/endpoint"
	"github.com/clusterregistry/operator/operator/version"
)

// Reconciler drives registries. All fields are required but for Namespaces, ResyncPeriod,
// DialEtcd and Dial.
type Reconciler struct {
	operand.HostCluster
	permission.Namespaces
	// Discovery asks the host what it is and what it serves.
	Discovery discovery.DiscoveryInterface
	// Releases are those that can run.
	Releases    []version.Release
	Environment render.Environment
	// Host leads to the host, through which an aggregated registry is used.
	Host *rest.Config
	// HostCA signs for the host's API server, in PEM.
	HostCA []byte
	// ResyncPeriod is how often a registry is reconciled at least; zero means
	// [verdict.Vigil], and more changes nothing.
	ResyncPeriod time.Duration
	// AskEtcd and AskServer reach into the registry: etcd members, and API
	// servers at an address.
	AskEtcd   func(context.Context, etcd.Access) etcd.State
	AskServer func(context.Context, health.Server) (version string, err error)
	// DialEtcd connects to an etcd member; nil means TLS over TCP.
	DialEtcd func(context.Context, etcdclient.Member) (net.Conn, error)
	// Dial connects to an independent registry as its clients do; nil means by TCP.
	Dial health.Dial
	// Handshake returns what a TLS server of the registry shows to clients.
	Handshake func(context.Context, handshake.Server) (handshake.Shown, error)

	certManager issuance.CertManager
	backupKind  backups.Kind
	outages     available.Outages
	silences    endpoint.Silences
	notes       upgrade.Notes
	revisions   etcd.Revisions
	comparisons etcd.Comparisons
	// retractions are how far reports were taken back, by the UIDs of registries.
	retractions sync.Map
	// keyWalks are how far clusters were stored again under other keys.
	keyWalks keychange.Walks
	host     answers
}
