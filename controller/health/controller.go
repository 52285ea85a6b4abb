package health

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	informer "github.com/clusterregistry/operator/client/informers/clusterregistry/v1beta1"
	lister "github.com/clusterregistry/operator/client/listers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/internal/contract"
)

// Config is what a [Controller] needs.
type Config struct {
	// Clusters is the registry, and Informer what it holds.
	Clusters typed.ClusterInterface
	Informer informer.ClusterInformer
	// Heartbeats are those of the clusters. Nil means that there are none.
	Heartbeats typed.ClusterHeartbeatInterface
	// Probe asks one API server.
	Probe func(context.Context, probe.Target) probe.Result
	// Client is the address whose endpoint is chosen; invalid when it is not known.
	Client netip.Addr
	// Own reports whether an endpoint is that of the host cluster itself, as this
	// program has registered it. Nil means that none is.
	Own func(cluster string, endpoint v1beta1.Endpoint) bool
	// Trouble returns when the registry last failed to answer; zero for never. Signs
	// of life that came meanwhile were not seen.
	Trouble func() time.Time
	// Unwatched returns why clusters can't be watched for a while; nil when they can.
	Unwatched func() error
	// Gap says that ranges of the host cluster are not known, so that entries may lead
	// probes there; "" when they are.
	Gap func() string
	// Say is told how the function is whenever that changes, with a sentence unless it
	// is running, as it is in the beginning.
	Say func(state contract.FunctionState, message string)
	// Period is the time between two probes of a cluster, and between two lists of all
	// heartbeats, and Concurrency how many
	// clusters are asked at once: among those that answered soon when they were asked
	// last, among those that did not, and among those that were never asked.
	Period      time.Duration
	Concurrency int
	Clock       clock.Clock
	Metrics     *Metrics
}

// Controller asks clusters how they are and reports it.
type Controller struct {
	Config
	lister   lister.ClusterLister
	schedule *schedule

	mu     sync.Mutex
	states map[string]*state
	// unreached counts the clusters whose newest probe failed.
	unreached int
	outage    outage
	isolated  bool
	// cutOff is when this side was last isolated; zero for never.
	cutOff time.Time
	// unreported is what could not be written, heard what heartbeats there are, and said how
	// the function is.
	unreported unreported
	heard      heard
	said       contract.FunctionState
}

// New returns a controller that follows the informer, which the caller starts: with
// clusters that are trimmed to what the controller needs.
func New(config Config) (*Controller, error) {
	c := &Controller{Config: config, lister: config.Informer.Lister(), states: map[string]*state{}, outage: outage{window: config.Period + probe.Timeout}, unreported: unreported{names: map[string]bool{}}, said: contract.FunctionRunning}
	c.schedule = newSchedule(config.Clock, config.Period, config.Concurrency, c.Check, config.Metrics)
	if err := config.Informer.Informer().SetTransform(trim); err != nil {
		return nil, err
	}
	_, err := config.Informer.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, initial bool) { c.added(object.(*v1beta1.Cluster), initial) },
		UpdateFunc: func(before, now any) { c.updated(before.(*v1beta1.Cluster), now.(*v1beta1.Cluster)) },
		DeleteFunc: c.deleted,
	})
	return c, err
}

// Run asks clusters until ctx ends. The informer must have synced.
func (c *Controller) Run(ctx context.Context) {
	c.mu.Lock()
	c.judge() // a registry may have no clusters yet
	c.mu.Unlock()
	if c.Heartbeats != nil {
		go c.listen(ctx)
	}
	c.schedule.run(ctx)
}
