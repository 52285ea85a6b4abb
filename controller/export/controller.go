package export

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	informer "github.com/clusterregistry/operator/client/informers/clusterregistry/v1beta1"
	lister "github.com/clusterregistry/operator/client/listers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/controller/export/verify"
	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// Period is the time between two writes of an object: KEP-4322 asks for it of profiles, and
	// other consumers connect again at each event as well.
	Period = 30 * time.Second
	// recheck is the time between two looks at whether a namespace may be written to and
	// the objects are served.
	recheck = 10 * time.Second
)

// Config is what a [Controller] needs.
type Config struct {
	format.Source
	// Targets are the namespaces.
	Targets []Target
	// Clusters is the registry, and Informer what it holds.
	Clusters typed.ClusterInterface
	Informer informer.ClusterInformer
	// Objects, Namespaces, Discovery and Bindings are of the host cluster.
	Objects    dynamic.Interface
	Namespaces corev1client.NamespaceInterface
	Discovery  discovery.DiscoveryInterface
	Bindings   rbacv1client.RoleBindingsGetter
	// Probe asks one API server: of what it has not reached, nothing is published. Own
	// reports whether an endpoint is that of the host cluster itself, as this program has
	// registered it; nil means that none is.
	Probe func(context.Context, probe.Target) probe.Result
	Own   func(cluster string, endpoint v1beta1.Endpoint) bool
	// Unwatched returns why clusters can't be watched for a while; nil when they can.
	Unwatched func() error
	// Gap says that ranges of the host cluster are not known, so that entries may lead
	// there; "" when they are. Nil means that another function says so.
	Gap func() string
	// Say is told how the function is when that changes, with a sentence unless it runs.
	Say func(state contract.FunctionState, message string)
	// Period is the time between two writes of an object.
	Period  time.Duration
	Clock   clock.WithTicker
	Metrics *Metrics
}

// Controller publishes clusters in namespaces, each target independently of the others:
//   - an endpoint is published once it was verified, and until then the one before stays;
//   - a namespace is looked at again and again until it is open, which is when it has the
//     label of the registry and the host cluster serves the objects;
//   - while it is open, a session follows its objects and writes those that differ;
//   - an object is deleted at once when another cluster answers than its entry is for;
//   - objects of clusters that are gone are deleted by a sweep, which sees all of them at
//     once, and keeps them when they are too many.
type Controller struct {
	Config
	lister     lister.ClusterLister
	publishers []*publisher
	verifier   *verify.Verifier

	mu       sync.Mutex
	verdicts map[string]verdict
	said     verdict
}

// verdict is how the function is in a namespace.
type verdict struct {
	state   contract.FunctionState
	message string
	// passing says that no one knows whether the namespace is open: what is under way
	// continues.
	passing bool
	// waiting says that nothing new is published before a ClusterSelection says what.
	waiting bool
}

// New returns a controller that follows the informer, which the caller starts: with
// clusters that are trimmed to what an object shows.
func New(config Config) (*Controller, error) {
	c := &Controller{Config: config, lister: config.Informer.Lister(), verdicts: map[string]verdict{}}
	c.verifier = c.newVerifier()
	for _, target := range config.Targets {
		c.publishers = append(c.publishers, &publisher{Controller: c, Target: target, kind: target.Format.Kind(), objects: config.Objects.Resource(target.Format.Kind().Resource).Namespace(target.Namespace)})
	}
	if err := config.Informer.Informer().SetTransform(trim); err != nil {
		return nil, err
	}
	_, err := config.Informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.changed,
		UpdateFunc: func(_, now any) { c.changed(now) },
		DeleteFunc: c.changed,
	})
	return c, err
}

// trim drops what no object shows before a cluster is kept in memory.
func trim(object any) (any, error) {
	if cluster, ok := object.(*v1beta1.Cluster); ok {
		cluster.Annotations, cluster.ManagedFields = nil, nil
		if cluster.Status != nil {
			cluster.Status.Reporters, cluster.Status.Capacity, cluster.Status.Allocatable = nil, nil, nil
		}
	}
	return object, nil
}

// changed has all namespaces look at a cluster, and its endpoint asked.
func (c *Controller) changed(object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return // no object of this informer
	}
	c.verifier.Queue.Add(key)
	for _, p := range c.publishers {
		p.notify(key)
	}
}

// Run publishes until ctx ends. The informer must have synced: nothing is taken as gone
// because it was not listed yet.
func (c *Controller) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { c.verifier.Run(ctx) })
	for _, p := range c.publishers {
		running.Go(func() { p.run(ctx) })
	}
	running.Wait()
}

// ranks order states by how much they matter to people.
var ranks = map[contract.FunctionState]int{contract.FunctionRunning: 0, contract.FunctionStarting: 1, contract.FunctionFailing: 2, contract.FunctionRefused: 3}

// report says how the function is, given how it is in one namespace.
func (c *Controller) report(in Target, v verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdicts[in.key()] = v
	c.Metrics.judged(in, v)
	sum := verdict{state: contract.FunctionRunning}
	var messages []string
	if c.Unwatched != nil {
		if err := c.Unwatched(); err != nil {
			sum.state = contract.FunctionFailing
			messages = append(messages, fmt.Sprintf("Clusters of the registry can't be watched, so that changes of their entries are not published, and nothing is deleted: %v.", err))
		}
	}
	for _, target := range c.Targets {
		v, known := c.verdicts[target.key()]
		if !known {
			v = verdict{state: contract.FunctionStarting, message: fmt.Sprintf("Waiting for namespace %q.", target.Namespace)}
		}
		if v.message != "" {
			messages = append(messages, v.message)
		}
		if ranks[v.state] > ranks[sum.state] {
			sum.state = v.state
		}
	}
	if c.Gap != nil {
		if gap := c.Gap(); gap != "" {
			if sum.state == contract.FunctionRunning && len(messages) == 0 { // else objects are held, which is more
				sum.state = contract.FunctionRangesUnknown
			}
			messages = append(messages, gap)
		}
	}
	sum.message = strings.Join(messages, "\n")
	if sum != c.said {
		c.said = sum
		c.Say(sum.state, sum.message)
	}
}
