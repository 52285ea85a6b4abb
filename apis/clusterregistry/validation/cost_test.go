package validation

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
)

// endpointsOf returns a stored cluster with as many endpoints as it may have, of which some
// have a CA bundle.
func endpointsOf(ca []byte, bundles int) *clusterregistry.Cluster {
	c := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", ResourceVersion: "1"}}
	for i := range MaxEndpoints {
		endpoint := clusterregistry.Endpoint{Name: fmt.Sprintf("e%d", i), URL: fmt.Sprintf("https://e%d.example", i), ClientCIDRs: []string{fmt.Sprintf("10.%d.0.0/16", i)}}
		if i < bundles {
			endpoint.CABundle = ca
		}
		c.Spec.Endpoints = append(c.Spec.Endpoints, endpoint)
	}
	form.FillV1alpha1(&c.Spec)
	return c
}

// TestAnUnchangedSpecIsNotChecked: a write of labels costs the same whatever else is in the
// cluster, but for one comparison, and what it changes is checked.
func TestAnUnchangedSpecIsNotChecked(t *testing.T) {
	ca, _ := certificate(t)
	cost := func(stored *clusterregistry.Cluster, version string) float64 {
		labeled := stored.DeepCopy()
		labeled.Labels = map[string]string{"a": "b"}
		compare := testing.AllocsPerRun(10, func() { equality.DeepEqual(labeled.Spec, stored.Spec) })
		return testing.AllocsPerRun(10, func() {
			if faults := ClusterUpdate(labeled, stored, version); len(faults) > 0 {
				t.Error(faults.ToAggregate())
			}
		}) - compare
	}
	for _, version := range []string{form.V1alpha1, form.V1beta1} {
		full, empty := cost(endpointsOf(ca, MaxEndpoints), version), cost(&clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", ResourceVersion: "1"}}, version)
		if full > empty+MaxEndpoints {
			t.Errorf("%s: a label of a large cluster takes %v allocations besides the comparison, that of an empty one %v", version, full, empty)
		}
		wrong := endpointsOf(ca, 1)
		wrong.Labels = map[string]string{"a": "not a value"}
		if faults := ClusterUpdate(wrong, endpointsOf(ca, 1), version); len(faults) != 1 {
			t.Errorf("%s: a wrong label beside a spec that did not change: %v", version, faults)
		}
	}
}

// TestABundleIsParsedOnce: what both forms and several endpoints have is parsed once.
func TestABundleIsParsedOnce(t *testing.T) {
	ca, key := certificate(t)
	cost := func(bundles int) float64 {
		c := endpointsOf(ca, bundles)
		return testing.AllocsPerRun(10, func() {
			if faults := Cluster(c, form.V1alpha1); len(faults) > 0 {
				t.Error(faults.ToAggregate())
			}
		})
	}
	single := testing.AllocsPerRun(10, func() { certificatesOnly(ca) })
	none, one, all := cost(0), cost(1), cost(MaxEndpoints)
	if one > none+1.9*single {
		t.Errorf("a bundle in both forms takes %v allocations, and parsing it %v", one-none, single)
	}
	if all > one+single {
		t.Errorf("a bundle of %d endpoints takes %v allocations, and that of one %v", MaxEndpoints, all-none, one-none)
	}
	// What one endpoint has right says nothing of another's.
	c := endpointsOf(ca, 2)
	c.Spec.Endpoints[1].CABundle = key
	for _, version := range []string{form.V1alpha1, form.V1beta1} {
		if faults := Cluster(c, version); len(faults) != 1 {
			t.Errorf("%s: a key beside a certificate: %v", version, faults)
		}
	}
}
