package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/clusterregistry/operator/apis/clusterregistry/address"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
)

// Options are what a Provider needs.
type Options struct {
	// Registry is a client of the registry. Its user needs to get, list and watch
	// clusters.clusterregistry.k8s.io.
	Registry versioned.Interface
	// Plugins get credentials for clusters. The first one for which a cluster has an entry
	// of access is taken, and of several such entries the first.
	Plugins []Plugin
	// Selector leaves out clusters by their labels. Nil means none.
	Selector labels.Selector
	// ClientAddress is where this program connects from, by which it chooses among the
	// endpoints of a cluster. Invalid means that it doesn't know.
	ClientAddress netip.Addr
	// Addresses says where entries may lead besides what no entry may: loopback, link-local
	// and multicast addresses and the metadata services of clouds are refused anyway. Give it
	// the ranges of the cluster that this program runs in.
	Addresses address.Policy
	// Dial connects to clusters, in the place of a net.Dialer that refuses what Addresses
	// does. It is given host and port of the endpoint's URL, or of its proxy, and has to
	// refuse itself what no entry may lead to once names are resolved.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Available says whether a cluster is available, and if not, why, in the place of its
	// condition Available: for registries whose clusters nothing probes.
	Available func(*v1beta1.Cluster) error
	// Probed returns when whoever probes the clusters of the registry was last at work, such as
	// by the Lease of the registry's controller (Renewed). Entries don't say how old they are:
	// nothing is written to one while its cluster does not change. When Probed has returned
	// nothing new for two minutes, no condition Available is believed until it does again. It is
	// asked every 15 seconds. Nil means that conditions are believed whatever their age.
	Probed func(context.Context) (time.Time, error)
	// Timeout bounds each of the steps by which a cluster is engaged: to get credentials and
	// an answer, and to fill caches; and then each request of the cluster's client, and each
	// read of its cache. Zero means 30 seconds.
	Timeout time.Duration
	// Cluster are options for each cluster, such as its scheme. The program's own client and
	// cache are built with them.
	Cluster []cluster.Option

	// loopback is for this package's tests, whose servers are on this machine.
	loopback bool
}

// Plugin gets credentials for clusters: of those that have an entry of access with the
// audience Controller and the plugin's name or type. What else an entry says is data for
// the plugin. Nothing in it is run.
type Plugin struct {
	// Name is the name of the entries that the plugin is for. Empty means any.
	Name string
	// Type is the provider.type of the entries that the plugin is for. Empty means any,
	// also entries that have no provider.
	Type string
	// Exec is a program of the caller that prints credentials, as in a kubeconfig. With
	// ProvideClusterInfo it is given the cluster, and the entry's provider.config as the
	// cluster's config: strings that whoever writes the Cluster has chosen.
	Exec *clientcmdapi.ExecConfig
	// Authorize adds credentials to a configuration that has all but these. It is called
	// each time that a cluster is engaged, and should return when ctx is done. What expires
	// must renew itself, as with rest.Config.BearerTokenFile or WrapTransport.
	Authorize func(ctx context.Context, config *rest.Config, cluster *v1beta1.Cluster, access *v1beta1.Access) error
}

// complete checks options and sets those that are not given.
func (o *Options) complete() error {
	if o.Registry == nil {
		return errors.New("options of the provider: Registry is missing; set it to a client of the registry")
	}
	if len(o.Plugins) == 0 {
		return errors.New("options of the provider: there are no Plugins, so no cluster could be signed in to; name one for the entries of access that clusters have")
	}
	for i, plugin := range o.Plugins {
		if plugin.Name == "" && plugin.Type == "" {
			return fmt.Errorf("options of the provider: Plugins[%d] has neither a Name nor a Type; say for which entries of access it is", i)
		}
		if (plugin.Exec == nil) == (plugin.Authorize == nil) {
			return fmt.Errorf("options of the provider: Plugins[%d] needs either Exec or Authorize", i)
		}
		if plugin.Exec != nil && plugin.Exec.Command == "" {
			return fmt.Errorf("options of the provider: Plugins[%d].Exec names no Command", i)
		}
	}
	if o.Timeout < 0 {
		return fmt.Errorf("options of the provider: Timeout is %s; set a positive one, or none", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Selector == nil {
		o.Selector = labels.Everything()
	}
	if o.Available == nil {
		o.Available = available
	}
	return nil
}

// isFor reports whether a plugin is for an entry of access.
func (p *Plugin) isFor(access *v1beta1.Access) bool {
	return access.Audience == v1beta1.AudienceController &&
		(p.Name == "" || p.Name == access.Name) &&
		(p.Type == "" || access.Provider != nil && p.Type == access.Provider.Type)
}
