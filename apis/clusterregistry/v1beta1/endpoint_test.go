package v1beta1_test

import (
	"net/netip"
	"testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

func TestEndpointFor(t *testing.T) {
	all := []v1beta1.Endpoint{
		{Name: "unknown"},
		{Name: "outside", URL: "https://outside.example"},
		{Name: "second", URL: "https://second.example"},
		{Name: "inside", URL: "https://inside.example", ClientCIDRs: []string{"10.0.0.0/8", "2001:db8::/32"}},
		{Name: "near", URL: "https://near.example", ClientCIDRs: []string{"10.1.0.0/16"}},
	}
	ipv6 := []v1beta1.Endpoint{
		{Name: "none", URL: "https://none.example", ClientCIDRs: []string{"nonsense"}},
		{Name: "all of IPv6", URL: "https://ipv6.example", ClientCIDRs: []string{"::/0"}},
		{Name: "any", URL: "https://any.example"},
	}
	spelled := []v1beta1.Endpoint{{Name: "all", URL: "https://all.example", ClientCIDRs: []string{"0.0.0.0/0", "::/0"}}}
	for _, test := range []struct {
		reason    string
		endpoints []v1beta1.Endpoint
		client    string
		want      string
	}{
		{"the longest range wins over its order", all, "10.1.2.3", "near"},
		{"a range wins over any client", all, "10.2.0.1", "inside"},
		{"a mapped address is one of IPv4", all, "::ffff:10.1.2.3", "near"},
		{"IPv6", all, "2001:db8::1", "inside"},
		{"the first one for any client", all, "192.0.2.1", "outside"},
		{"a client that doesn't know its address", all, "", "outside"},
		{"any client, spelled out", spelled, "192.0.2.1", "all"},
		{"any client, spelled out, to one that doesn't know its address", spelled, "", "all"},
		{"an address with a zone", ipv6, "fe80::1%eth0", "all of IPv6"},
		{"all of one family are not any client", ipv6, "", "any"},
		{"all of the other family", ipv6[:2], "192.0.2.1", ""},
		{"a range that is none", ipv6[:1], "192.0.2.1", ""},
		{"none for the client", all[3:], "192.0.2.1", ""},
		{"none at all", nil, "192.0.2.1", ""},
		{"a range whose endpoint has no URL", []v1beta1.Endpoint{{Name: "unknown", ClientCIDRs: []string{"192.0.2.0/24"}}, all[1]}, "192.0.2.1", "outside"},
		{"an endpoint whose URL is not known yet", all[:1], "192.0.2.1", ""},
	} {
		var client netip.Addr
		if test.client != "" {
			client = netip.MustParseAddr(test.client)
		}
		got := ""
		if at := (&v1beta1.ClusterSpec{Endpoints: test.endpoints}).EndpointFor(client); at >= 0 {
			got = test.endpoints[at].Name
		}
		if got != test.want {
			t.Errorf("%s: got %q; want %q", test.reason, got, test.want)
		}
	}
}
