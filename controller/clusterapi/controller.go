package clusterapi

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	informer "github.com/clusterregistry/operator/client/informers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/labelkeys"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// Manager is spec.manager.name of the entries. It is not that of the host cluster's
	// entry: neither function takes the other's entries for its own.
	Manager = contract.ClusterAPIReporter
	// Reporter is the name of this package's entry in status.reporters, and its field
	// manager.
	Reporter = contract.ClusterAPIReporter

	// IgnoreLabel keeps a Cluster, or all of a namespace, out of the registry when it is
	// "true", whatever the selector says.
	IgnoreLabel = "clusterregistry.k8s.io/ignore"
	// CAAnnotation on a Cluster names a ConfigMap beside it with its CA, under "ca.crt".
	CAAnnotation = "clusterregistry.k8s.io/ca-configmap"
	// AdoptAnnotation on an entry is the UID of the Cluster that it is for from now on.
	AdoptAnnotation = contract.AdoptAnnotation
	// KeepAnnotation on an entry says why it is kept although its Cluster is gone: such
	// as [ReasonMoved]. While it is there, the entry is not deleted.
	KeepAnnotation = contract.KeepAnnotation
	// NamespaceAnnotation on an entry is the UID of the namespace that its Cluster was in:
	// one of the same name made later, or in another host cluster, knows nothing of it.
	NamespaceAnnotation = "clusterregistry.k8s.io/source-namespace-uid"

	// moveAnnotation is what "clusterctl move" sets on an object before it deletes it.
	moveAnnotation = "clusterctl.cluster.x-k8s.io/delete-for-move"

	// workers is how many clusters are worked on at once.
	workers = 8
	// confirm is how long a Cluster must be missed before the host cluster is asked
	// whether it is gone: when a CRD is removed, its objects go first.
	confirm = 10 * time.Second
	// reread is the time between two readings of a ConfigMap with a CA.
	reread = 5 * time.Minute
)

// DeletionPolicy is what becomes of an entry whose Cluster is gone.
type DeletionPolicy string

const (
	// PolicyRetain keeps the entry.
	PolicyRetain DeletionPolicy = "Retain"
	// PolicyDelete deletes it after the grace period.
	PolicyDelete DeletionPolicy = "Delete"
)

// Config is what a [Controller] needs.
type Config struct {
	// Source is Cluster API in the host cluster, and Host the rest of that.
	Source Source
	Host   kubernetes.Interface
	// Clusters is the registry, and Informer what it holds, which the caller starts.
	Clusters typed.ClusterInterface
	Informer informer.ClusterInformer
	// Registry and Namespace are the name and the namespace of the registry: a namespace
	// of Namespaces other than that one is read only if its label lets this registry in.
	Registry, Namespace string
	Namespaces          []string
	// Selector chooses Clusters by their labels over those of their namespaces.
	Selector labels.Selector
	// Name makes names of entries, and Labels says which labels entries get.
	Name   Template
	Labels labelkeys.AllowList
	// Grants are what entries get by the namespace of their Cluster.
	Grants Grants
	// Policy is what becomes of an entry whose Cluster is gone, after Grace.
	Policy DeletionPolicy
	Grace  time.Duration
	// Period is the time between two looks at namespaces, and whether Cluster API is there.
	Period time.Duration
	// Unwatched returns why the registry can't be watched for a while; nil when it can.
	Unwatched func() error
	// Say is told how the function is.
	Say     func(state contract.FunctionState, message string)
	Clock   clock.WithTicker
	Metrics *Metrics
}

// Controller keeps the entries of Cluster API's clusters.
type Controller struct {
	Config
	entries    cache.Indexer
	queue      workqueue.TypedRateLimitingInterface[types.NamespacedName]
	namespaces map[string]*namespace
	changed    chan struct{}

	mu sync.Mutex
	// holds are the Clusters that are not imported, or not fully, for a person to resolve.
	holds map[types.NamespacedName]hold
	// waiting are the same ones, by the names of the entries that they would get.
	waiting map[string]map[types.NamespacedName]bool
	// failing has the newest error of what failed several times in a row.
	failing map[types.NamespacedName]error
	// moved are Clusters that were deleted for a move.
	moved map[types.UID]bool
	// missed says since when a Cluster that an entry is for has not been seen.
	missed map[types.UID]time.Time
}

// New returns a controller that follows the informer.
func New(config Config) (*Controller, error) {
	c := &Controller{
		Config: config, entries: config.Informer.Informer().GetIndexer(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](200*time.Millisecond, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: config.Clock}),
		namespaces: map[string]*namespace{}, changed: make(chan struct{}, 1),
		holds: map[types.NamespacedName]hold{}, waiting: map[string]map[types.NamespacedName]bool{}, failing: map[types.NamespacedName]error{},
		moved: map[types.UID]bool{}, missed: map[types.UID]time.Time{},
	}
	for _, name := range config.Namespaces {
		c.namespaces[name] = newNamespace(name)
	}
	if err := config.Informer.Informer().SetTransform(trimEntry); err != nil {
		return nil, err
	}
	if err := config.Informer.Informer().AddIndexers(cache.Indexers{bySource: indexBySource, byManager: indexByManager}); err != nil {
		return nil, err
	}
	_, err := config.Informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.entryChanged,
		UpdateFunc: func(before, now any) { c.entryChanged(before); c.entryChanged(now) },
		DeleteFunc: c.entryChanged,
	})
	return c, err
}

// Run keeps the entries until ctx ends. The informer must have synced.
func (c *Controller) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, n := range c.namespaces {
		group.Go(func() { c.follow(ctx, n) })
	}
	group.Go(func() { c.judge(ctx) })
	group.Go(func() { c.remind(ctx) })
	// Of two Clusters for one name the older one gets it: both are to be known first.
	for _, n := range c.namespaces {
		select {
		case <-n.decided:
		case <-ctx.Done():
		}
	}
	for range workers {
		group.Go(func() { c.work(ctx) })
	}
	<-ctx.Done()
	c.queue.ShutDown()
	group.Wait()
}

// work works on what is in the queue until that is shut down.
func (c *Controller) work(ctx context.Context) {
	for {
		key, ended := c.queue.Get()
		if ended {
			return
		}
		c.note(ctx, key, c.reconcile(ctx, key))
		c.queue.Done(key)
	}
}

// remind looks again at what no event tells of: at held Clusters once in a period, and at
// those with a ConfigMap less often.
func (c *Controller) remind(ctx context.Context) {
	read := c.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.Clock.After(c.Period):
		}
		for key := range c.held() {
			c.queue.Add(key)
		}
		if c.Clock.Since(read) < reread {
			continue
		}
		read = c.Clock.Now()
		for _, n := range c.namespaces {
			for _, source := range n.sources() {
				if source.Annotations[CAAnnotation] != "" {
					c.queue.Add(keyOf(source))
				}
			}
		}
	}
}

// entryChanged looks at the Cluster that an entry is for, and at those that wait for its
// name.
func (c *Controller) entryChanged(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	entry, ok := object.(*v1beta1.Cluster)
	if !ok {
		return
	}
	if key, ours := sourceOf(entry); ours {
		c.queue.Add(key)
	}
	c.wake(entry.Name)
}

// wake looks at the held Clusters that would get a name.
func (c *Controller) wake(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.waiting[name] {
		c.queue.Add(key)
	}
}
