package health

import (
	"fmt"

	"github.com/clusterregistry/operator/internal/contract"
)

// unreported are the clusters whose newest report could not be written.
type unreported struct {
	names map[string]bool
	// failures counts attempts that failed since the last one that succeeded.
	failures int
	why      error
}

// note remembers how the report of a cluster went: written says that there was one, err
// why it failed.
func (u *unreported) note(name string, written bool, err error) {
	if err != nil {
		u.names[name] = true
		u.failures++
		u.why = err
		return
	}
	delete(u.names, name)
	if written || len(u.names) == 0 {
		u.failures = 0
	}
}

// isolatedMessage is for people.
const isolatedMessage = "More than half of the clusters that were reachable, and at least three, can't be reached: this is most likely an outage on the side of the health controller, so conditions keep their status for ten probes and at least five minutes, and then turn Unknown, or False while at least three clusters answer. See the metric clusterregistry_controller_clusters. If these clusters are gone for good, delete their entries."

// judge finds out how the function is, and tells when that changes; not when only the
// error does that it fails with. The caller holds the lock.
func (c *Controller) judge() {
	now := c.Clock.Now()
	if c.isolated = c.outage.isolated(now); c.isolated {
		c.cutOff = now
	}
	c.Metrics.clusters(len(c.states), c.unreached, c.isolated)
	state, message, gap := contract.FunctionRunning, "", ""
	if c.Gap != nil {
		gap = c.Gap()
	}
	var unwatched error
	if c.Unwatched != nil {
		unwatched = c.Unwatched()
	}
	switch {
	case unwatched != nil:
		state, message = contract.FunctionFailing, fmt.Sprintf("Clusters of the registry can't be watched, so that changes of their entries are not seen: %v", unwatched)
	case c.unreported.failures >= persistent:
		state, message = contract.FunctionFailing, fmt.Sprintf("Reports of clusters can't be written to the registry, %d in a row: %v", persistent, c.unreported.why)
	case c.heard.unheard() != "":
		state, message = contract.FunctionFailing, c.heard.unheard()
	case c.isolated:
		state, message = contract.FunctionIsolated, isolatedMessage
	case gap != "":
		state, message = contract.FunctionRangesUnknown, gap
	}
	if state != c.said {
		c.said = state
		if c.Say != nil {
			c.Say(state, message)
		}
	}
}
