package export

import (
	"context"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/verify"
	"github.com/clusterregistry/operator/controller/probe"
)

// newVerifier returns what verifies the endpoints of the clusters that any target publishes.
func (c *Controller) newVerifier() *verify.Verifier {
	return verify.New(verify.Config{
		Clusters: c.lister, Clock: c.Clock, Wanted: c.publishes,
		Probe: func(ctx context.Context, of probe.Target) probe.Result { return c.Probe(ctx, of) },
		Own:   func(cluster string, endpoint v1beta1.Endpoint) bool { return c.Own != nil && c.Own(cluster, endpoint) },
		Found: func(name string) {
			for _, p := range c.publishers {
				p.notify(name)
			}
		},
	})
}

// publishes reports whether anything of a cluster is to be published, once its endpoint is
// verified.
func (c *Controller) publishes(cluster *v1beta1.Cluster) bool {
	for _, p := range c.publishers {
		if p.asks(cluster) && p.Format.Offered(cluster, p.Target.Target) == nil {
			return true
		}
	}
	return false
}
