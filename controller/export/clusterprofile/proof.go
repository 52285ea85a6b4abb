package clusterprofile

import (
	"bytes"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

// proof is what is known of the endpoint of an entry besides what the entry says. The zero
// value knows nothing: no one is led there.
type proof struct {
	format.Known
	// published are the providers that the profile has, as this package has written them:
	// their endpoint was verified then.
	published []accessProvider
	// healthy is ControlPlaneHealthy of the profile; nil for none.
	healthy *metav1.Condition
}

// of reports whether an endpoint was verified, by this process or by one before.
func (p proof) of(endpoint v1beta1.Endpoint) bool { return p.Verified || p.leadsTo(endpoint) }

// leadsTo reports whether clients of the profile are led to an endpoint.
func (p proof) leadsTo(endpoint v1beta1.Endpoint) bool {
	return slices.ContainsFunc(p.published, func(a accessProvider) bool {
		return a.Cluster.Server == endpoint.URL && a.Cluster.ProxyURL == endpoint.ProxyURL && bytes.Equal(a.Cluster.CABundle, endpoint.CABundle)
	})
}

// stale reports whether a condition is of an endpoint that the entry may not have any more:
// it was observed in a generation before, and the endpoint has changed since the profile
// was written, or had then.
func (p proof) stale(c *metav1.Condition, cluster *v1beta1.Cluster) bool {
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration == 0 || c.ObservedGeneration == cluster.Generation {
		return false
	}
	endpoint, ok := format.EndpointOf(cluster)
	return !ok || !p.leadsTo(endpoint) || p.healthy != nil && p.healthy.Reason == reasonEndpointChanged
}

// proofOf adds what a profile says to what is known; have is nil when there is none.
func proofOf(is format.Known, have *profile) proof {
	known := proof{Known: is}
	if have == nil {
		return known
	}
	known.healthy = meta.FindStatusCondition(have.Status.Conditions, v1beta1.ConditionControlPlaneHealthy)
	for _, a := range have.Status.AccessProviders {
		if !format.Foreign(have.ManagedFields, fieldpath.MakePathOrDie("status", "accessProviders", fieldpath.KeyByFields("name", a.Name))) {
			known.published = append(known.published, a)
		}
	}
	return known
}
