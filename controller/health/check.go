package health

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/probe"
)

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
	if !c.note(cluster, result, began) {
		return true // it was deleted
	}
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

// note remembers the result of a probe that began at a time, and whether this side is
// isolated. It returns false when the cluster was deleted meanwhile.
func (c *Controller) note(cluster *v1beta1.Cluster, result probe.Result, began time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, now := c.state(cluster), c.Clock.Now()
	if s == nil {
		return false
	}
	c.count(s, -1)
	before := s.history
	if result.Outcome.Reached() {
		s.seen, s.sign, s.moved = now, now, false
		before = before.valid(now)
	}
	if result.Outcome != probe.Failed {
		s.silent = time.Time{}
	} else if s.silent.IsZero() {
		s.silent = began
	}
	s.history, s.asked = before.after(result, false), began
	c.outage.note(s, now)
	c.count(s, 1)
	if c.judge(); c.isolated {
		s.history = before.after(result, true)
	}
	if s.history.unreached == 1 {
		s.failed = now
	}
	return true
}

// evidence returns what is known of a cluster besides what its entry says, and when it
// was last seen; false when it was deleted.
func (c *Controller) evidence(cluster *v1beta1.Cluster) (evidence, time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state(cluster)
	if s == nil {
		return evidence{}, time.Time{}, false
	}
	since := s.sign
	if c.Trouble != nil && c.Trouble().After(since) {
		since = c.Trouble()
	}
	if c.cutOff.After(since) { // nothing was seen from here all the while
		since = c.cutOff
	}
	unreached := time.Duration(0)
	if !s.silent.IsZero() {
		unreached = c.Clock.Since(s.silent)
	}
	return evidence{
		history: s.history, unreached: unreached, isolated: c.isolated, proven: c.outage.proven(), undecided: c.undecided(s, published(cluster)),
		led: s.led, moved: s.moved, silence: c.silence(s, since),
	}, s.seen, true
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
		e, seen, ok := c.evidence(cluster)
		if !ok {
			return false, nil
		}
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
