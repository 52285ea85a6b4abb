package network

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
)

// candidates is the range that subnets are chosen from.
const candidates = "10.200.%d.0/24"

// ChooseSubnet returns the subnet that is wanted, or the first free one when
// none is, and an error that says what to do when the computer already routes
// an overlapping range.
func ChooseSubnet(ctx context.Context, wanted string) (netip.Prefix, error) {
	routes, err := routes(ctx)
	if err != nil {
		return netip.Prefix{}, err
	}
	return chooseSubnet(wanted, routes)
}

// route is one line of "ip -json route".
type route struct {
	Destination string `json:"dst"`
	Device      string `json:"dev"`
}

func chooseSubnet(wanted string, routes []route) (netip.Prefix, error) {
	if wanted != "" {
		subnet, err := netip.ParsePrefix(wanted)
		if err != nil || subnet.Bits() != 24 || !subnet.Addr().Is4() || subnet.Masked() != subnet {
			return netip.Prefix{}, fmt.Errorf("subnet %q is not an IPv4 /24 such as 10.201.0.0/24", wanted)
		}
		for _, inside := range []string{PodsCIDR, ServicesCIDR} {
			if subnet.Overlaps(netip.MustParsePrefix(inside)) {
				return netip.Prefix{}, fmt.Errorf("subnet %s overlaps the cluster's own range %s; choose another with --subnet", wanted, inside)
			}
		}
		if r, taken := overlapping(subnet, routes); taken {
			return netip.Prefix{}, fmt.Errorf("address range %s is in use: this computer routes %s through %s; choose a free /24 with --subnet", wanted, r.Destination, r.Device)
		}
		return subnet, nil
	}
	for i := range 256 {
		subnet := netip.MustParsePrefix(fmt.Sprintf(candidates, i))
		if _, taken := overlapping(subnet, routes); !taken {
			return subnet, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("address range 10.200.0.0/16 is in use: every /24 of it is routed on this computer; choose a free /24 with --subnet, see \"ip route\"")
}

func overlapping(subnet netip.Prefix, routes []route) (route, bool) {
	for _, r := range routes {
		destination, err := netip.ParsePrefix(r.Destination)
		if err != nil {
			address, err := netip.ParseAddr(r.Destination)
			if err != nil {
				continue // "default" and the like claim no range
			}
			destination = netip.PrefixFrom(address, address.BitLen())
		}
		// A route of zero length is a default route by another name.
		if destination.Bits() > 0 && destination.Overlaps(subnet) {
			return r, true
		}
	}
	return route{}, false
}

func routes(ctx context.Context) ([]route, error) {
	out, err := exec.CommandContext(ctx, "ip", "-json", "-4", "route", "show", "table", "all").Output()
	if err != nil {
		return nil, fmt.Errorf("ip route: %w", err)
	}
	var routes []route
	if len(out) == 0 {
		return nil, nil
	}
	return routes, json.Unmarshal(out, &routes)
}
