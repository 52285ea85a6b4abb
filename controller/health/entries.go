package health

import (
	"bytes"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/probe"
)

// state is what is remembered of one cluster.
type state struct {
	uid      types.UID
	endpoint v1beta1.Endpoint
	history  history
	// at is when the newest result came; zero for longer ago than results count as
	// recent.
	at time.Time
	// asked is when the probe with the newest result began, and failed when the first
	// of the failures in a row came that it ended.
	asked, failed time.Time
	// silent is when the first of the probes in a row began that failed, zero while none does.
	silent time.Time
	// reachable says that this controller has reported the cluster as reachable, at
	// this endpoint, and not since that it is not; moved that the endpoint has changed and
	// was not reached since.
	reachable, moved bool
	// led is the generation in which this controller saw the endpoint lead elsewhere
	// than before; 0 for none.
	led int64
	// seen is the last sign of life that this controller had itself, sign the last of
	// any reporter, by a heartbeat or an entry: both by the clock of this process.
	seen, sign time.Time
	// silence is the longest that was known since the sign of, which tells the last one.
	silence time.Duration
	of      time.Time
}

func (s *state) failing() bool {
	return s.history.probes > 0 && s.history.last.Outcome == probe.Failed
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

// added begins with a cluster: with a period of grace for its heartbeat.
func (c *Controller) added(cluster *v1beta1.Cluster, initial bool) {
	s := &state{uid: cluster.UID, endpoint: c.target(cluster).Endpoint, sign: c.Clock.Now()}
	if p := property(statusOf(cluster).Properties); p != nil {
		s.history = seeded(p.Value)
	}
	s.reachable = held(published(cluster))
	c.mu.Lock()
	c.forget(cluster.Name)
	c.states[cluster.Name] = s
	c.count(s, 1)
	c.mu.Unlock()
	c.schedule.add(cluster.Name, string(cluster.UID), !initial, laneOf(published(cluster)))
}

// laneOf returns where a cluster waits, by what was reported of it before this process
// began; nil for nothing.
func laneOf(reachable *metav1.Condition) lane {
	switch {
	case reachable == nil:
		return fresh
	case reachable.Status == metav1.ConditionTrue:
		return good
	}
	return bad
}

func (c *Controller) updated(before, now *v1beta1.Cluster) {
	if before.UID != now.UID { // deleted and made again, while the watch was interrupted
		c.added(now, false)
		return
	}
	c.mu.Lock()
	if s := c.state(now); s != nil && alive(before, now) {
		s.sign = c.Clock.Now()
	}
	c.mu.Unlock()
	if before.Generation != now.Generation {
		c.schedule.hurry(now.Name, !reflect.DeepEqual(c.target(before).Endpoint, c.target(now).Endpoint))
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

// state returns what is remembered of a cluster, of this very object and endpoint; nil
// when the object was deleted. The caller holds the lock.
func (c *Controller) state(cluster *v1beta1.Cluster) *state {
	s, endpoint := c.states[cluster.Name], c.target(cluster).Endpoint
	if s == nil || s.uid != cluster.UID {
		return nil
	}
	c.count(s, -1)
	if !reflect.DeepEqual(s.endpoint, endpoint) {
		if !sameServer(s.endpoint, endpoint) {
			s.led = cluster.Generation
		}
		s.endpoint, s.history, s.silent, s.moved = endpoint, history{}, time.Time{}, true
	}
	s.reachable = !s.moved && held(published(cluster))
	c.count(s, 1)
	return s
}

// sameServer reports whether two endpoints lead to the same place.
func sameServer(a, b v1beta1.Endpoint) bool {
	return a.URL == b.URL && a.TLSServerName == b.TLSServerName && a.ProxyURL == b.ProxyURL && bytes.Equal(a.CABundle, b.CABundle)
}

// held reports whether a cluster was reachable when it could be told last.
func held(reachable *metav1.Condition) bool {
	return is(reachable, metav1.ConditionTrue) || is(reachable, metav1.ConditionUnknown) && reachable.Reason == ReasonMostUnreachable
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
