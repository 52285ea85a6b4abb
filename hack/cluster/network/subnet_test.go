package network

import (
	"strings"
	"testing"
)

func TestChooseSubnet(t *testing.T) {
	var full []route
	full = append(full, route{Destination: "10.200.0.0/16", Device: "eth9"})
	for _, test := range []struct {
		reason, wanted string
		routes         []route
		want, err      string
	}{
		{reason: "nothing is routed", want: "10.200.0.0/24"},
		{reason: "a default route claims nothing", routes: []route{{Destination: "default"}, {Destination: "0.0.0.0/0"}}, want: "10.200.0.0/24"},
		{reason: "another cluster has the first", routes: []route{{Destination: "10.200.0.0/24"}}, want: "10.200.1.0/24"},
		{reason: "a single address counts", routes: []route{{Destination: "10.200.0.7"}}, want: "10.200.1.0/24"},
		{reason: "everything is taken", routes: full, err: "every /24 of it is routed"},
		{reason: "an explicit choice", wanted: "10.201.5.0/24", routes: full, want: "10.201.5.0/24"},
		{reason: "an explicit choice that is taken", wanted: "10.200.3.0/24", routes: full, err: "routes 10.200.0.0/16 through eth9"},
		{reason: "an explicit choice that pods use", wanted: "10.244.3.0/24", err: "overlaps the cluster's own range 10.244.0.0/16"},
		{reason: "not a /24", wanted: "10.201.0.0/16", err: "is not an IPv4 /24"},
		{reason: "host bits", wanted: "10.201.0.9/24", err: "is not an IPv4 /24"},
		{reason: "nonsense", wanted: "here", err: "is not an IPv4 /24"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			got, err := chooseSubnet(test.wanted, test.routes)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil || got.String() != test.want {
				t.Fatalf("got %v, %v, want %s", got, err, test.want)
			}
		})
	}
}
