package export

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
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

// verifier has a handshake with the endpoint of each entry that is to be published, once
// in each of its generations: whoever connects to it trusts that it is the entry's.
type verifier struct {
	*Controller
	queue workqueue.TypedDelayingInterface[string]

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

func newVerifier(c *Controller) *verifier {
	return &verifier{Controller: c, found: map[string]verification{}, queue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: c.Clock})}
}

// target returns what to ask of a cluster; false when nothing of it is to be published.
func (v *verifier) target(cluster *v1beta1.Cluster) (probe.Target, bool) {
	for _, p := range v.publishers {
		if !p.asks(cluster) || p.Format.Offered(cluster, p.Target.Target) != nil {
			continue
		}
		at := format.EndpointAt(cluster)
		endpoint := cluster.Spec.Endpoints[at]
		return probe.Target{Endpoint: endpoint, Field: fmt.Sprintf("spec.endpoints[%d]", at), Own: v.Own != nil && v.Own(cluster.Name, endpoint)}, true
	}
	return probe.Target{}, false
}

// known returns what is known of the endpoint that a cluster has now.
func (v *verifier) known(cluster *v1beta1.Cluster) format.Known {
	v.mu.Lock()
	defer v.mu.Unlock()
	is, ok := v.found[cluster.Name]
	endpoint, has := format.EndpointOf(cluster)
	if !ok || !has || is.uid != cluster.UID || !format.SameEndpoint(is.endpoint, endpoint) {
		return format.Known{}
	}
	return format.Known{Asked: true, Result: is.result, Verified: is.verified}
}

// run asks until ctx ends.
func (v *verifier) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	defer v.queue.ShutDown()
	for range asking {
		running.Go(func() {
			for {
				name, shutdown := v.queue.Get()
				if shutdown {
					return
				}
				if ctx.Err() == nil {
					v.one(ctx, name)
				}
				v.queue.Done(name)
			}
		})
	}
	<-ctx.Done()
}

// one asks the endpoint of a cluster, unless it has answered in this generation.
func (v *verifier) one(ctx context.Context, name string) {
	cluster, err := v.lister.Get(name)
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
		v.queue.AddAfter(name, wait)
	}
	v.mu.Lock()
	v.found[name] = now
	v.mu.Unlock()
	for _, p := range v.publishers {
		p.notify(name)
	}
}

func (v *verifier) forget(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.found, name)
}
