package v1beta1_test

import (
	"net/netip"
	"testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

func TestEndpointFor(t *testing.T) {
	spec := &v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{
		{Name: "wide", ClientCIDRs: []string{"10.0.0.0/8", "2001:db8::/32"}},
		{Name: "any"},
		{Name: "narrow", ClientCIDRs: []string{"nonsense", "10.1.0.0/16"}},
		{Name: "any, later"},
		{Name: "all of IPv6", ClientCIDRs: []string{"::/0"}},
	}}
	for client, want := range map[string]int{"10.2.3.4": 0, "2001:db8::1": 0, "10.1.2.3": 2, "::ffff:10.1.2.3": 2, "192.0.2.1": 1, "2001:db9::1%eth0": 4} {
		if got := spec.EndpointFor(netip.MustParseAddr(client)); got != want {
			t.Errorf("%s uses %d, want %d", client, got, want)
		}
	}
	if got := spec.EndpointFor(netip.Addr{}); got != 1 {
		t.Errorf("a client without an address uses %d", got)
	}
	if got := (&v1beta1.ClusterSpec{Endpoints: spec.Endpoints[:1]}).EndpointFor(netip.MustParseAddr("192.0.2.1")); got != -1 {
		t.Errorf("a client that no range contains uses %d", got)
	}
}
