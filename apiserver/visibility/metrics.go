package visibility

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// The outcomes of reviews.
const (
	outcomeAllowed = "allowed"
	outcomeDenied  = "denied"
	outcomeError   = "error"
)

var (
	reviews = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "clusterregistry_visibility_reviews_total",
		Help:           "Reviews of clustersets/clusters that were asked of the authorizer, because none was kept, by the outcome: allowed, denied, or error (the request was refused with 503).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"outcome"})
	changes = metrics.NewCounter(&metrics.CounterOpts{
		Name:           "clusterregistry_visibility_changes_total",
		Help:           "Changes of the ClusterSets that a caller sees which this server was the first to notice. Each ends the caller's watches with 410.",
		StabilityLevel: metrics.ALPHA,
	})
)

func init() { legacyregistry.MustRegister(reviews, changes) }
