package render

import (
	"slices"
	"testing"
)

// TestLacks names each object that would publish an empty CA, and no other: what makes
// the CAs is applied before they exist.
func TestLacks(t *testing.T) {
	const aggregated = "{metadata: {name: fleet, namespace: team}, spec: {mode: Aggregated, version: v0.2.0}}"
	const independent = "{metadata: {name: fleet, namespace: team}, spec: {mode: Independent, version: v0.2.0}}"
	for _, test := range []struct {
		reason, registry string
		change           func(*Trust)
		want             []string
	}{
		{"all CAs exist", aggregated, func(*Trust) {}, nil},
		{"no users' CA is needed", aggregated, func(trust *Trust) { trust.Clients = nil }, nil},
		{"the servers' CA is missing", aggregated, func(trust *Trust) { trust.Serving = nil }, []string{"APIService v1alpha1.clusterregistry.k8s.io: serving-ca", "ConfigMap fleet-trust: serving-ca"}},
		{"etcd's CA is missing", aggregated, func(trust *Trust) { trust.Etcd, trust.EtcdClients = nil, nil }, []string{"ConfigMap fleet-etcd-client-trust-e3b0c44298fc1c14: etcd-client-ca", "ConfigMap fleet-etcd-trust-e3b0c44298fc1c14: etcd-ca", "ConfigMap fleet-trust: etcd-ca"}},
		{"the users' CA is missing", independent, func(trust *Trust) { trust.Clients = nil }, []string{"ConfigMap fleet-trust: client-ca"}},
	} {
		in := input(t, test.registry)
		test.change(&in.Trust)
		result := rendered(t, in)
		var got []string
		for _, object := range result.Objects() {
			if lacks := result.Lacks(object); lacks != "" {
				got = append(got, object.GetKind()+" "+object.GetName()+": "+lacks)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}
