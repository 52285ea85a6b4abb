package health

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
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
	// Say is told how the function is whenever that changes, with a sentence unless it
	// is running, as it is in the beginning.
	Say func(state contract.FunctionState, message string)
	// Period is the time between two probes of a cluster, and Concurrency how many
	// clusters are asked at once, among those that answered soon when they were asked
	// last, and among the others.
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
	// unreported is what could not be written, and said how the function is.
	unreported unreported
	said       contract.FunctionState
}

// state is what is remembered of one cluster.
type state struct {
	uid      types.UID
	endpoint v1beta1.Endpoint
	history  history
	// at is when the newest result came; zero for longer ago than results count as
	// recent.
	at time.Time
	// reachable says that this controller has reported the cluster as reachable, at
	// this endpoint, and not otherwise since; moved that the endpoint has changed and
	// was not reached since.
	reachable, moved bool
	// led is the generation in which this controller saw the endpoint lead elsewhere
	// than before; 0 for none.
	led int64
	// seen is the last sign of life that this controller had itself, sign the last of
	// any reporter: both by the clock of this process.
	seen, sign time.Time
}

func (s *state) failing() bool {
	return s.history.probes > 0 && s.history.last.Outcome == probe.Failed
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

// trim drops what no verdict follows from before a cluster is kept in memory: anyone who
// can write an entry can make these parts large.
func trim(object any) (any, error) {
	if cluster, ok := object.(*v1beta1.Cluster); ok {
		cluster.Annotations, cluster.Spec.Access = nil, nil
		cluster.ManagedFields = slices.DeleteFunc(cluster.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager != Reporter })
	}
	return object, nil
}

// Run asks clusters until ctx ends. The informer must have synced.
func (c *Controller) Run(ctx context.Context) { c.schedule.run(ctx) }

// added begins with a cluster: with a period of grace for its heartbeat.
func (c *Controller) added(cluster *v1beta1.Cluster, initial bool) {
	c.mu.Lock()
	c.forget(cluster.Name)
	c.state(cluster)
	c.mu.Unlock()
	c.schedule.add(cluster.Name, string(cluster.UID), !initial, is(published(cluster), metav1.ConditionTrue))
}

func (c *Controller) updated(before, now *v1beta1.Cluster) {
	if before.UID != now.UID { // deleted and made again, while the watch was interrupted
		c.added(now, false)
		return
	}
	c.mu.Lock()
	s := c.state(now)
	if alive(before, now) {
		s.sign = c.Clock.Now()
	}
	c.mu.Unlock()
	if before.Generation != now.Generation {
		c.schedule.hurry(now.Name)
	}
}

func (c *Controller) deleted(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	cluster, ok := object.(*v1beta1.Cluster)
	if !ok {
		return
	}
	c.mu.Lock()
	c.forget(cluster.Name)
	c.unreported.note(cluster.Name, false, nil)
	c.judge()
	c.mu.Unlock()
	c.schedule.remove(cluster.Name)
}

// alive reports whether another reporter has had a sign of life: when one goes away, or
// has none any more, that is none.
func alive(before, now *v1beta1.Cluster) bool {
	old := signs(before)
	for reporter, at := range signs(now) {
		if had, ok := old[reporter]; !ok || !had.Equal(&at) {
			return true
		}
	}
	return false
}

// signs are the signs of life that others report, by the reporter's name.
func signs(cluster *v1beta1.Cluster) map[string]metav1.Time {
	out := map[string]metav1.Time{}
	for _, reporter := range statusOf(cluster).Reporters {
		if reporter.Name != Reporter && reporter.LastSeen != nil {
			out[reporter.Name] = *reporter.LastSeen
		}
	}
	return out
}

// state returns what is remembered of a cluster, of this very object and endpoint.
// The caller holds the lock.
func (c *Controller) state(cluster *v1beta1.Cluster) *state {
	endpoint := c.target(cluster).Endpoint
	s := c.states[cluster.Name]
	if s != nil && s.uid != cluster.UID {
		c.forget(cluster.Name)
		s = nil
	}
	if s == nil {
		s = &state{uid: cluster.UID, endpoint: endpoint, sign: c.Clock.Now()}
		if p := property(statusOf(cluster).Properties); p != nil {
			s.history = seeded(p.Value)
		}
		c.states[cluster.Name] = s
		c.count(s, 1)
	}
	c.count(s, -1)
	if !reflect.DeepEqual(s.endpoint, endpoint) {
		if !sameServer(s.endpoint, endpoint) {
			s.led = cluster.Generation
		}
		s.endpoint, s.history, s.moved = endpoint, history{}, true
	}
	s.reachable = !s.moved && is(published(cluster), metav1.ConditionTrue)
	c.count(s, 1)
	return s
}

// sameServer reports whether two endpoints lead to the same place.
func sameServer(a, b v1beta1.Endpoint) bool {
	return a.URL == b.URL && a.TLSServerName == b.TLSServerName && a.ProxyURL == b.ProxyURL && bytes.Equal(a.CABundle, b.CABundle)
}

// published returns what this controller has reported of whether a cluster is
// reachable; nil for nothing.
func published(cluster *v1beta1.Cluster) *metav1.Condition {
	if own := ownEntry(statusOf(cluster)); own != nil {
		return meta.FindStatusCondition(own.Conditions, Reachable)
	}
	return nil
}

func (c *Controller) forget(name string) {
	if s := c.states[name]; s != nil {
		c.count(s, -1)
		s.at = time.Time{}
		delete(c.states, name)
	}
}

// count adds a cluster to the sums or takes it off.
func (c *Controller) count(s *state, by int) {
	if s.failing() {
		c.unreached += by
	}
	c.outage.count(s, by)
}

// target returns what to ask of a cluster.
func (c *Controller) target(cluster *v1beta1.Cluster) probe.Target {
	at := cluster.Spec.EndpointFor(c.Client)
	if at < 0 {
		return probe.Target{Field: "spec.endpoints"}
	}
	endpoint := cluster.Spec.Endpoints[at]
	return probe.Target{
		Endpoint: endpoint,
		Field:    fmt.Sprintf("spec.endpoints[%d]", at),
		Own:      c.Own != nil && c.Own(cluster.Name, endpoint),
	}
}

const (
	// quick is how soon an answer must come that holds up no other cluster.
	quick = time.Second
	// patience bounds a report to the registry: until it has ended, no other cluster
	// is asked in its place.
	patience = 10 * time.Second
)

// Check asks one cluster and reports what that changes. It returns false when the
// cluster did not answer, or only slowly.
func (c *Controller) Check(ctx context.Context, name string) bool {
	asked, err := c.lister.Get(name)
	if err != nil {
		return true // it was deleted
	}
	target := c.target(asked)
	began := c.Clock.Now()
	result := c.Probe(ctx, target)
	took := c.Clock.Since(began)
	if ctx.Err() != nil {
		return true // this side is ending, and that is why the probe failed
	}
	c.Metrics.probed(result)
	cluster, err := c.lister.Get(name)
	if err != nil || cluster.UID != asked.UID || !reflect.DeepEqual(c.target(cluster).Endpoint, target.Endpoint) {
		return true // what was asked is not the cluster's any more
	}
	c.note(cluster, result)
	writing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	written, err := c.publish(writing, cluster, target.Endpoint)
	if ctx.Err() != nil {
		return true // this side is ending
	}
	if err != nil {
		c.Metrics.failed()
		klog.FromContext(ctx).Error(err, "The health of a cluster could not be reported", "cluster", name)
	}
	if !apierrors.IsInvalid(err) { // which says something of this one alone
		c.mu.Lock()
		c.unreported.note(name, written, err)
		c.judge()
		c.mu.Unlock()
	}
	return result.Outcome != probe.Failed && took < quick
}

// note remembers a result, and whether this side is isolated.
func (c *Controller) note(cluster *v1beta1.Cluster, result probe.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, now := c.state(cluster), c.Clock.Now()
	c.count(s, -1)
	before := s.history
	if result.Outcome.Reached() {
		s.seen, s.sign, s.moved = now, now, false
		before = before.valid(now)
	}
	s.history = before.after(result, false)
	c.outage.note(s, now)
	c.count(s, 1)
	if c.judge(); c.isolated {
		s.history = before.after(result, true)
	}
}

// evidence returns what is known of a cluster besides what its entry says.
func (c *Controller) evidence(cluster *v1beta1.Cluster) (evidence, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state(cluster)
	since := s.sign
	if c.Trouble != nil && c.Trouble().After(since) {
		since = c.Trouble()
	}
	if c.cutOff.After(since) { // nothing was seen from here all the while
		since = c.cutOff
	}
	return evidence{history: s.history, isolated: c.isolated, led: s.led, silence: c.Clock.Since(since)}, s.seen
}

// attempts bounds how often a report is made again because others wrote meanwhile.
const attempts = 5

// publish writes what is to be said of a cluster, if its entry doesn't say so yet. The
// write fails when the cluster has changed since it was read; then the report is made
// again, of the cluster as it is, unless it has another endpoint than the one that was
// asked. It returns whether there was something to write.
func (c *Controller) publish(ctx context.Context, cluster *v1beta1.Cluster, asked v1beta1.Endpoint) (written bool, err error) {
	uid := cluster.UID
	for range attempts {
		e, seen := c.evidence(cluster)
		r := reportOf(cluster, e)
		if len(r.own) == 0 || r.same(statusOf(cluster)) {
			return false, nil
		}
		_, err = c.Clusters.ApplyStatus(ctx, r.configuration(cluster, c.Clock.Now(), seen), metav1.ApplyOptions{FieldManager: Reporter, Force: true})
		if err == nil {
			c.Metrics.wrote()
			return true, nil
		}
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if !apierrors.IsConflict(err) {
			return false, err
		}
		cluster, err = c.Clusters.Get(ctx, cluster.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, err
		case cluster.UID != uid || !reflect.DeepEqual(c.target(cluster).Endpoint, asked):
			return false, nil // what was found is not of this cluster any more
		}
	}
	return false, fmt.Errorf("others have changed the cluster before each of %d attempts to report of it", attempts)
}
