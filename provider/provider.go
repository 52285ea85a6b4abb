package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/clusters"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	informers "github.com/clusterregistry/operator/client/informers/clusterregistry/v1beta1"
	listers "github.com/clusterregistry/operator/client/listers/clusterregistry/v1beta1"
)

// A cluster that could not be engaged is tried again after the first of these, and each time
// after twice as long, up to the second.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// notThere is why a cluster without a Cluster is not engaged.
const notThere = "the registry has no such cluster that the selector matches"

// Provider engages the available clusters of a registry. The documentation of this package
// says which these are. All methods may be called at any time.
type Provider struct {
	options  Options
	kinds    *kinds
	clusters clusters.Clusters[*member]
	informer cache.SharedIndexInformer
	lister   listers.ClusterLister
	queue    workqueue.TypedDelayingInterface[string]
	running  sync.WaitGroup

	lock    sync.Mutex
	log     logr.Logger
	started bool
	number  int
	// members are those that are engaged or are about to be, by the name of their Cluster,
	// and held the reasons why others are not.
	members  map[string]*member
	held     map[string]string
	failures map[string]failure
	// probing is what is known of whether clusters are probed, and unprobed why they are not, nil
	// when they are, or no one is asked.
	probing  probing
	unprobed error
}

// failure says until when a cluster that failed is left alone, while its target is the same.
type failure struct {
	key   string
	count int
	until time.Time
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider that engages nothing before it is started, which a manager of
// multicluster-runtime does.
func New(options Options) (*Provider, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	informer := informers.NewFilteredClusterInformer(options.Registry, 0, cache.Indexers{}, func(list *metav1.ListOptions) {
		list.LabelSelector = options.Selector.String()
	})
	p := &Provider{
		options: options, log: logr.Discard(),
		kinds:    &kinds{objects: map[string]client.Object{}},
		clusters: clusters.New[*member](),
		informer: informer,
		lister:   listers.NewClusterLister(informer.GetIndexer()),
		queue:    workqueue.NewTypedDelayingQueue[string](),
		members:  map[string]*member{}, held: map[string]string{}, failures: map[string]failure{},
	}
	p.clusters.WaitCacheTimeout = options.Timeout
	// The default compares configurations, of which those with a proxy never are equal.
	p.clusters.EqualClusters = func(a, b *member) bool { return a.key == b.key }
	p.clusters.ErrorHandler = func(err error, message string, pairs ...any) { p.logger().Error(err, message, pairs...) }
	return p, nil
}

func (p *Provider) logger() logr.Logger {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.log
}

// Get implements multicluster.Provider. The error for a cluster that is not engaged is an
// ErrClusterNotFound, and says why it is not.
func (p *Provider) Get(ctx context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	p.lock.Lock()
	m, why := p.members[name.String()], p.held[name.String()]
	p.lock.Unlock()
	if m != nil {
		if c, err := p.clusters.Get(ctx, m.id); err == nil {
			return c, nil
		}
		why = cmp.Or(why, "it is being connected to")
	}
	why = cmp.Or(why, notThere)
	return nil, fmt.Errorf("cluster %s is not engaged: %s: %w", name, why, multicluster.ErrClusterNotFound)
}

// ClusterNames returns the names of all clusters that are engaged.
func (p *Provider) ClusterNames() []multicluster.ClusterName {
	p.lock.Lock()
	defer p.lock.Unlock()
	var out []multicluster.ClusterName
	for name, m := range p.members {
		if m.engaged {
			out = append(out, multicluster.ClusterName(name))
		}
	}
	slices.Sort(out)
	return out
}

// IndexField implements multicluster.Provider. An error of a cluster that is down is
// returned, and the index is there for all others, and for it when it is engaged again.
func (p *Provider) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	return p.clusters.IndexField(ctx, object, field, extract)
}

// Start implements multicluster.ProviderRunnable: it engages clusters until ctx is done. As
// long as the registry can't be read, what is engaged stays so.
func (p *Provider) Start(ctx context.Context, controllers multicluster.Aware) error {
	p.lock.Lock()
	if p.started {
		p.lock.Unlock()
		return errors.New("the provider was started before; make another one")
	}
	p.started, p.log = true, logf.FromContext(ctx).WithName("clusterregistry")
	p.lock.Unlock()

	add := func(object any) {
		if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			p.queue.Add(name)
		}
	}
	if _, err := p.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: add}); err != nil {
		return err
	}
	p.running.Go(func() { p.informer.RunWithContext(ctx) })
	defer p.running.Wait()
	if !cache.WaitForCacheSync(ctx.Done(), p.informer.HasSynced) {
		return nil
	}
	if p.options.Probed != nil {
		p.askProbing(ctx)
		p.running.Go(func() { p.watchProbing(ctx) })
	}
	stop := context.AfterFunc(ctx, p.queue.ShutDown)
	defer stop()
	for {
		name, ended := p.queue.Get()
		if ended {
			return nil
		}
		p.reconcile(ctx, name, controllers)
		p.queue.Done(name)
	}
}

// reconcile decides about one cluster:
//  1. read:      its Cluster, and how it is reached by that
//  2. disengage: if it must not be reached any more, or in another way
//  3. engage:    if it is available, and did not fail just now
//
// It doesn't wait for the cluster.
func (p *Provider) reconcile(ctx context.Context, name string, controllers multicluster.Aware) {
	c, err := p.lister.Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		p.logger().Error(err, "read a Cluster from the cache", "cluster", name)
		return
	}
	var t *target
	why := errors.New(notThere)
	if err == nil {
		t, why = p.options.target(c)
	}

	p.lock.Lock()
	defer p.lock.Unlock()
	if m := p.members[name]; m != nil {
		if why == nil && t.key == m.key {
			return
		}
		reason := "its endpoint, access or id has changed"
		if why != nil {
			reason = why.Error()
		}
		p.log.Info("Disengaging a cluster", "cluster", name, "reason", reason)
		delete(p.members, name)
		m.cancel()
	}
	if err != nil {
		delete(p.held, name)
		delete(p.failures, name)
		return
	}
	if why == nil {
		why = p.options.Available(c)
	}
	if why == nil {
		why = p.unprobed
	}
	if why != nil {
		if p.held[name] != why.Error() {
			p.log.V(1).Info("Not engaging a cluster", "cluster", name, "reason", why.Error())
		}
		p.held[name] = why.Error()
		return
	}
	if last, ok := p.failures[name]; ok && last.key == t.key && time.Now().Before(last.until) {
		return // it is in the queue for then
	}
	p.begin(ctx, name, t, controllers)
}

// begin has a member of its own engage a cluster. The lock is held.
func (p *Provider) begin(ctx context.Context, name string, t *target, controllers multicluster.Aware) {
	ctx, cancel := context.WithCancel(ctx)
	p.number++
	m := &member{target: t, id: multicluster.ClusterName(name + "/" + t.key + "/" + strconv.Itoa(p.number)), cancel: cancel, ended: make(chan struct{})}
	p.members[name] = m
	p.running.Go(func() { p.finished(name, m, p.run(ctx, m, controllers)) })
}

// noteEngaged notes that a member is.
func (p *Provider) noteEngaged(m *member) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.members[m.cluster.Name] == m {
		m.engaged = true
		p.log.Info("Engaged a cluster", "cluster", m.cluster.Name, "endpoint", m.endpoint.URL)
		delete(p.held, m.cluster.Name)
		delete(p.failures, m.cluster.Name)
	}
}

// finished notes that a member is no longer engaged, or could not be, and has the latter
// tried again.
func (p *Provider) finished(name string, m *member, err error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.members[name] != m {
		return // it was disengaged, and its name may be another one's by now
	}
	delete(p.members, name)
	if err == nil {
		return
	}
	last := p.failures[name]
	if last.key != m.key {
		last = failure{key: m.key}
	}
	wait := min(firstRetry<<min(last.count, 10), lastRetry)
	p.failures[name] = failure{key: m.key, count: last.count + 1, until: time.Now().Add(wait)}
	p.held[name] = err.Error()
	p.log.Error(err, "A cluster could not be engaged, or did not stay so", "cluster", name, "endpoint", m.endpoint.URL, "retryAfter", wait.String())
	p.queue.AddAfter(name, wait)
}
