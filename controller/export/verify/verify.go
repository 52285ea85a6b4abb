// Package verify has a handshake with the endpoint of each entry that is to be published, once
// in each of its generations: whoever connects to it trusts that it is the entry's.
package verify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	lister "github.com/clusterregistry/operator/client/listers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/controller/probe"
)

const (
	// sooner and later bound the time until an endpoint that was not verified is asked
	// again.
	sooner, later = time.Second, time.Minute
	// asking is how many endpoints are asked at once.
	asking = 64
)

// Config is what a [Verifier] needs.
type Config struct {
	// Clusters are the entries.
	Clusters lister.ClusterLister
	// Probe asks one API server. Own reports whether an endpoint is that of the host cluster
	// itself, as this program has registered it.
	Probe func(context.Context, probe.Target) probe.Result
	Own   func(cluster string, endpoint v1beta1.Endpoint) bool
	// Wanted reports whether anything is to be published of a cluster once its endpoint is
	// verified.
	Wanted func(*v1beta1.Cluster) bool
	// Found is told of which cluster more is known.
	Found func(name string)
	Clock clock.WithTicker
}

// Verifier has these handshakes. Whoever uses it adds the names of clusters to its queue when
// they change.
type Verifier struct {
	Config
	Queue workqueue.TypedDelayingInterface[string]

	mu    sync.Mutex
	found map[string]verification
}

// verification is what the newest probe of an endpoint has found.
type verification struct {
	uid        types.UID
	generation int64
	endpoint   v1beta1.Endpoint
	result     probe.Result
	// verified says that a handshake with this very endpoint has succeeded, in this
	// generation or in one before.
	verified bool
	// failures counts probes in a row, in this generation, that have not reached it, and
	// until is when the next one is due.
	failures int
	until    time.Time
}

// settled reports whether nothing is to be asked yet of an endpoint in a generation.
func (v verification) settled(cluster *v1beta1.Cluster, now time.Time) bool {
	return v.generation == cluster.Generation && (v.result.Outcome.Reached() || now.Before(v.until))
}

// New returns a verifier that has asked nothing.
func New(config Config) *Verifier {
	return &Verifier{Config: config, found: map[string]verification{}, Queue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: config.Clock})}
}

// target returns what to ask of a cluster; false when nothing of it is to be published.
func (v *Verifier) target(cluster *v1beta1.Cluster) (probe.Target, bool) {
	at := format.EndpointAt(cluster)
	if at < 0 || !v.Wanted(cluster) {
		return probe.Target{}, false
	}
	endpoint := cluster.Spec.Endpoints[at]
	return probe.Target{Endpoint: endpoint, Field: fmt.Sprintf("spec.endpoints[%d]", at), Own: v.Own(cluster.Name, endpoint)}, true
}

// Known returns what is known of the endpoint that a cluster has now.
func (v *Verifier) Known(cluster *v1beta1.Cluster) format.Known {
	v.mu.Lock()
	defer v.mu.Unlock()
	is, ok := v.found[cluster.Name]
	endpoint, has := format.EndpointOf(cluster)
	if !ok || !has || is.uid != cluster.UID || !format.SameEndpoint(is.endpoint, endpoint) {
		return format.Known{}
	}
	return format.Known{Asked: true, Result: is.result, Verified: is.verified, Failures: is.failures}
}

// Remembered returns of how many clusters something is known.
func (v *Verifier) Remembered() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.found)
}

// Run asks until ctx ends.
func (v *Verifier) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	defer v.Queue.ShutDown()
	for range asking {
		running.Go(func() {
			for {
				name, shutdown := v.Queue.Get()
				if shutdown {
					return
				}
				if ctx.Err() == nil {
					v.One(ctx, name)
				}
				v.Queue.Done(name)
			}
		})
	}
	<-ctx.Done()
}

// One asks the endpoint of a cluster, unless it has answered in this generation.
func (v *Verifier) One(ctx context.Context, name string) {
	cluster, err := v.Clusters.Get(name)
	if err != nil {
		v.forget(name)
		return
	}
	target, wanted := v.target(cluster)
	if !wanted {
		return
	}
	v.mu.Lock()
	before, ok := v.found[name]
	v.mu.Unlock()
	same := ok && before.uid == cluster.UID && format.SameEndpoint(before.endpoint, target.Endpoint)
	if same && before.settled(cluster, v.Clock.Now()) {
		return
	}
	result := v.Probe(ctx, target)
	if ctx.Err() != nil {
		return // this side is ending, and that is why it failed
	}
	now := verification{
		uid: cluster.UID, generation: cluster.Generation, endpoint: target.Endpoint, result: result,
		verified: result.Outcome.Reached() || same && before.verified,
	}
	if !result.Outcome.Reached() {
		if same && before.generation == now.generation {
			now.failures = before.failures
		}
		wait := min(sooner<<min(now.failures, 10), later)
		now.failures, now.until = now.failures+1, v.Clock.Now().Add(wait)
		v.Queue.AddAfter(name, wait)
	}
	v.mu.Lock()
	v.found[name] = now
	v.mu.Unlock()
	v.Found(name)
}

func (v *Verifier) forget(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.found, name)
}
