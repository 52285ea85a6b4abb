package health

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/controller/probe"
)

// outage tells whether it is most likely this side that is cut off.
//
// Only clusters count whose entry says that they are reachable: what is down anyway, or
// never answered, would hide an outage of the others, or, if anyone may add entries,
// feign one. They are judged twice. The newest results of all of them are right in the
// end, but probes that wait for a timeout are slow: most of a large fleet would still
// have its result of before while the first have failed often enough to be False. The
// results of the last window alone are right soon after the outage began.
type outage struct {
	// window is how far back results count as recent. In it every cluster that
	// answers has at least one.
	window time.Duration
	// began is when the first result came: a window that has not passed since has
	// only some of the clusters.
	began       time.Time
	all, recent sums
	// results are the recent ones, in the order of their times.
	results []sample
}

// sums count clusters by their newest result; those of which there is none count as asked.
type sums struct{ asked, failing int }

func (s *sums) add(other sums, by int) {
	s.asked += by * other.asked
	s.failing += by * other.failing
}

// most reports whether more than half fail, and at least three.
func (s sums) most() bool { return s.failing >= 3 && 2*s.failing > s.asked }

// proven reports whether enough clusters have answered lately to tell that this side is not
// cut off from all.
func (o *outage) proven() bool { return o.recent.asked-o.recent.failing >= 3 }

// sample is a result of a cluster.
type sample struct {
	at time.Time
	of *state
}

// counts returns what a cluster adds to the sums.
func (s *state) counts() sums {
	switch {
	case !s.reachable || s.history.probes > 0 && s.history.last.Outcome == probe.NotAsked:
		return sums{}
	case s.failing():
		return sums{asked: 1, failing: 1}
	}
	return sums{asked: 1}
}

// undecided reports whether it can't be told yet if a cluster is down, or this side cut
// off: another cluster that counts answered when it was asked last, or was never asked,
// and that was before this one failed first. A process that gets too little of a
// processor may ask some clusters three times before it asks the rest once. Published is
// what the cluster's entry says of whether it is reachable. The caller holds the lock.
func (c *Controller) undecided(failed *state, published *metav1.Condition) bool {
	if failed.history.unreached < threshold || is(published, metav1.ConditionFalse) {
		return false // nothing is to be decided
	}
	for _, s := range c.states {
		if n := s.counts(); n.asked > n.failing && s.asked.Before(failed.failed) {
			return true
		}
	}
	return false
}

// count adds a cluster to the sums or takes it off.
func (o *outage) count(s *state, by int) {
	o.all.add(s.counts(), by)
	if !s.at.IsZero() {
		o.recent.add(s.counts(), by)
	}
}

// note makes a result that was just had the newest of a cluster, which is not counted now.
func (o *outage) note(s *state, now time.Time) {
	if o.began.IsZero() {
		o.began = now
	}
	s.at = now
	o.results = append(o.results, sample{now, s})
}

// isolated judges the results at a time.
func (o *outage) isolated(now time.Time) bool {
	for len(o.results) > 0 && now.Sub(o.results[0].at) > o.window {
		if old := o.results[0]; old.of.at.Equal(old.at) { // it had no newer one
			o.recent.add(old.of.counts(), -1)
			old.of.at = time.Time{}
		}
		o.results = o.results[1:]
	}
	whole := !o.began.IsZero() && now.Sub(o.began) >= o.window
	return o.all.most() || whole && o.recent.most()
}
