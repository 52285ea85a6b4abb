package v1beta1

import (
	"net/netip"
	"testing"
)

func TestEndpointFor(t *testing.T) {
	all := []Endpoint{
		{Name: "unknown"},
		{Name: "outside", URL: "https://outside.example"},
		{Name: "second", URL: "https://second.example"},
		{Name: "inside", URL: "https://inside.example", ClientCIDRs: []string{"10.0.0.0/8", "2001:db8::/32"}},
		{Name: "near", URL: "https://near.example", ClientCIDRs: []string{"10.1.0.0/16"}},
	}
	spelled := []Endpoint{{Name: "all", URL: "https://all.example", ClientCIDRs: []string{"0.0.0.0/0", "::/0"}}}
	for _, test := range []struct {
		reason    string
		endpoints []Endpoint
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
		{"none for the client", all[3:], "192.0.2.1", ""},
		{"none at all", nil, "192.0.2.1", ""},
		{"an endpoint whose URL is not known yet", all[:1], "192.0.2.1", ""},
	} {
		var client netip.Addr
		if test.client != "" {
			client = netip.MustParseAddr(test.client)
		}
		got, found := EndpointFor(test.endpoints, client)
		if got.Name != test.want || found != (test.want != "") {
			t.Errorf("%s: got %q, %t; want %q", test.reason, got.Name, found, test.want)
		}
	}
}
