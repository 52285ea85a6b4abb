package selection

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	informer "github.com/clusterregistry/operator/client/informers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/gate"
	"github.com/clusterregistry/operator/internal/contract"
)

// recheck is the time between two looks at whether a namespace is open, and at whether the host
// cluster has PlacementDecisions.
const recheck = 10 * time.Second

// Config is what a [Controller] needs.
type Config struct {
	// Registry and Namespace are the name and the namespace of the registry.
	Registry, Namespace string
	// Targets are the namespaces.
	Targets []Target
	// Informer is what the registry holds, which the caller starts.
	Informer informer.ClusterInformer
	// Objects and Namespaces are of the host cluster.
	Objects    dynamic.Interface
	Namespaces corev1client.NamespaceInterface
	// Unwatched returns why clusters can't be watched for a while; nil when they can.
	Unwatched func() error
	// Say is told how the function is when that changes, with a sentence unless it runs.
	Say     func(state contract.FunctionState, message string)
	Clock   clock.WithTicker
	Metrics *Metrics
}

// Controller acts on the selections of namespaces, each independently of the others.
type Controller struct {
	Config
	fleet *fleet
	// synced reports whether the fleet has what the informer had at first.
	synced cache.InformerSynced

	mu       sync.Mutex
	sessions map[string]*session
	verdicts map[string]verdict
	said     verdict
}

// verdict is how the function is in a namespace.
type verdict struct {
	state   contract.FunctionState
	message string
}

// New returns a controller that follows the informer.
func New(config Config) (*Controller, error) {
	c := &Controller{Config: config, fleet: newFleet(), sessions: map[string]*session{}, verdicts: map[string]verdict{}}
	if err := config.Informer.Informer().SetTransform(trim); err != nil {
		return nil, err
	}
	var err error
	c.synced, err = c.fleet.follow(config.Informer.Informer(), c.changed)
	return c, err
}

// changed has all selections looked at.
func (c *Controller) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		s.queueAll(settle)
	}
}

// Run acts until ctx ends, once the informer has synced: no cluster is taken as gone because it
// was not listed yet.
func (c *Controller) Run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return
	}
	var running sync.WaitGroup
	for _, target := range c.Targets {
		running.Go(func() { c.attend(ctx, target) })
	}
	running.Wait()
}

// attend has a session in a namespace while that is open, until ctx ends.
func (c *Controller) attend(ctx context.Context, target Target) {
	var end func()
	defer func() {
		if end != nil {
			end()
		}
	}()
	for {
		open, v := c.open(ctx, target.Namespace)
		switch {
		case ctx.Err() != nil:
			return
		case open && end == nil:
			end = c.begin(ctx, target)
		case !open && end != nil && v.state == contract.FunctionRefused:
			end()
			end = nil
		}
		if v.state == "" {
			v = c.judge(target.Namespace)
		}
		c.report(target.Namespace, v)
		select {
		case <-ctx.Done():
			return
		case <-c.Clock.After(recheck):
		}
	}
}

// open reports whether a namespace is open to the registry. Otherwise the verdict says why it is
// not, with the state Refused, or that it is not known.
func (c *Controller) open(ctx context.Context, namespace string) (bool, verdict) {
	if namespace == c.Namespace {
		return true, verdict{}
	}
	answer, err := gate.Gate{Namespaces: c.Namespaces, Registry: c.Registry, Namespace: c.Namespace}.Ask(ctx, namespace)
	switch {
	case err != nil:
		return false, verdict{contract.FunctionFailing, fmt.Sprintf("Whether namespace %q is open is not known: %v.", namespace, err)}
	case answer.Closed != "":
		return false, verdict{contract.FunctionRefused, answer.Closed + ". No ClusterSelection there is acted on until then."}
	case answer.Terminating:
		return false, verdict{contract.FunctionRefused, fmt.Sprintf("Namespace %q is being deleted: no ClusterSelection there is acted on until it is created again.", namespace)}
	}
	return true, verdict{}
}

// begin begins a session, and returns what ends it.
func (c *Controller) begin(ctx context.Context, target Target) func() {
	ctx, cancel := context.WithCancel(ctx)
	s := c.newSession(target)
	done := make(chan struct{})
	c.mu.Lock()
	c.sessions[target.Namespace] = s
	c.mu.Unlock()
	go func() {
		defer close(done)
		s.run(ctx)
	}()
	return func() {
		c.mu.Lock()
		delete(c.sessions, target.Namespace)
		c.mu.Unlock()
		cancel()
		<-done
		c.Metrics.forget(target.Namespace)
	}
}

// judge says how the function is in a namespace that is open.
func (c *Controller) judge(namespace string) verdict {
	c.mu.Lock()
	s := c.sessions[namespace]
	c.mu.Unlock()
	if s == nil {
		return verdict{state: contract.FunctionStarting}
	}
	return s.judge()
}

// ranks order states by how much they matter to people.
var ranks = map[contract.FunctionState]int{contract.FunctionRunning: 0, contract.FunctionStarting: 1, contract.FunctionFailing: 2, contract.FunctionRefused: 3}

// report says how the function is, given how it is in one namespace.
func (c *Controller) report(namespace string, v verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdicts[namespace] = v
	c.Metrics.judged(namespace, v.state)
	sum := verdict{state: contract.FunctionRunning}
	var messages []string
	if err := c.Unwatched(); err != nil {
		sum.state = contract.FunctionFailing
		messages = append(messages, fmt.Sprintf("Clusters of the registry can't be watched, so that no decision changes: %v.", err))
	}
	for _, target := range c.Targets {
		v, known := c.verdicts[target.Namespace]
		if !known {
			v = verdict{contract.FunctionStarting, fmt.Sprintf("Waiting for namespace %q.", target.Namespace)}
		}
		if v.message != "" {
			messages = append(messages, v.message)
		}
		if ranks[v.state] > ranks[sum.state] {
			sum.state = v.state
		}
	}
	sum.message = strings.Join(messages, "\n")
	if sum != c.said {
		c.said = sum
		c.Say(sum.state, sum.message)
	}
}
