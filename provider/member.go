package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// member is one cluster, reached in one way: from the moment that it is to be engaged until
// it is disengaged, after which another member can have its name.
type member struct {
	cluster.Cluster
	*target

	// id is what Clusters knows it by, and no other member, before or after. Clusters
	// removes by name what it has started when that ends, which may be late.
	id     multicluster.ClusterName
	cancel context.CancelFunc
	// ended is closed when the cluster, once it was started, has ended.
	ended chan struct{}
	once  sync.Once
	// engaged is true while controllers have it. The provider's lock is held for it.
	engaged bool
}

// Start implements cluster.Cluster.
func (m *member) Start(ctx context.Context) error {
	defer m.once.Do(func() { close(m.ended) })
	return m.Cluster.Start(ctx)
}

// aware has controllers know a member by the name of its Cluster, and is the mark by which
// its cache knows that a controller engages it.
type aware struct {
	multicluster.Aware
	name multicluster.ClusterName
}

// Engage implements multicluster.Aware.
func (a aware) Engage(ctx context.Context, _ multicluster.ClusterName, cl cluster.Cluster) error {
	return a.Aware.Engage(context.WithValue(ctx, engaging{}, true), a.name, cl)
}

// run engages a member, and keeps it so until ctx is done. It returns why it could not, or
// why that ended; nil when ctx was done.
func (p *Provider) run(ctx context.Context, m *member, controllers multicluster.Aware) error {
	defer p.clusters.Remove(m.id)
	defer m.cancel()
	err := p.engage(ctx, m, controllers)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	p.noteEngaged(m)
	select {
	case <-ctx.Done():
		return nil
	case <-m.ended:
		if ctx.Err() != nil {
			return nil
		}
		return errors.New("its cache has ended")
	}
}

// engage connects to a cluster, fills its caches and hands it to the controllers. No lock is
// held meanwhile, and each step is bounded.
func (p *Provider) engage(ctx context.Context, m *member, controllers multicluster.Aware) error {
	config, err := p.connect(ctx, m.target)
	if err != nil {
		return err
	}
	var options cluster.Options
	for _, option := range p.options.Cluster {
		option(&options)
	}
	if m.Cluster, err = cluster.New(config, append(p.options.Cluster, p.bound(options))...); err != nil {
		return err
	}
	err = p.clusters.Add(ctx, m.id, m, aware{controllers, multicluster.ClusterName(m.cluster.Name)})
	if bounded, ok := m.GetCache().(*boundedCache); ok && err != nil && bounded.failure() != nil {
		return bounded.failure()
	}
	return err
}

// connect returns a configuration for a cluster whose API server answers to it. The program
// of an exec plugin is not ended with a context, and one that hangs is not started again and
// again: it is waited for until the member is given up.
func (p *Provider) connect(ctx context.Context, t *target) (*rest.Config, error) {
	bounded, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	config, err := t.config(bounded, &p.options)
	if err != nil {
		return nil, err
	}
	answer := make(chan error, 1)
	go func() { answer <- ask(bounded, config, p.options.Timeout) }()
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", t.endpoint.URL, err)
	}
	return config, nil
}

// ask returns an error unless an API server answers. One that forbids to read its version
// does.
func ask(ctx context.Context, config *rest.Config, timeout time.Duration) error {
	config = rest.CopyConfig(config)
	config.Timeout = timeout
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	err = c.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// bound returns an option for a cluster with others, that bounds what its cache, its client
// and its mapper of kinds wait for. Only watches are not bounded.
func (p *Provider) bound(others cluster.Options) cluster.Option {
	limit := func(c *http.Client) *http.Client {
		limited := *c
		limited.Timeout = p.options.Timeout
		return &limited
	}
	return func(o *cluster.Options) {
		o.NewCache = newCache(others.NewCache, p.options.Timeout, p.kinds)
		o.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
			options.HTTPClient = limit(options.HTTPClient)
			if others.NewClient != nil {
				return others.NewClient(config, options)
			}
			return client.New(config, options)
		}
		o.MapperProvider = func(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
			if others.MapperProvider != nil {
				return others.MapperProvider(config, limit(httpClient))
			}
			return apiutil.NewDynamicRESTMapper(config, limit(httpClient))
		}
	}
}
