package v1beta1

import "net/netip"

// EndpointFor returns the place in spec.endpoints of the endpoint that a client at an
// address uses, or -1 when none is for it: the one with the longest of the ranges that
// contain the address, else the first one for any client, which has no ranges.
// Endpoints without a URL, and ranges that are none, don't count. The invalid address is
// that of a client that doesn't know its own: for that one a range of all addresses of a
// family is as good as none, but only where no endpoint is for any client.
func (s *ClusterSpec) EndpointFor(client netip.Addr) int {
	client = client.Unmap().WithZone("")
	forAny, chosen, longest := -1, -1, -1
	for i, endpoint := range s.Endpoints {
		if endpoint.URL == "" {
			continue
		}
		if len(endpoint.ClientCIDRs) == 0 && forAny < 0 {
			forAny = i
		}
		for _, cidr := range endpoint.ClientCIDRs {
			prefix, err := netip.ParsePrefix(cidr)
			if err == nil && prefix.Bits() > longest && (prefix.Contains(client) || !client.IsValid() && prefix.Bits() == 0) {
				chosen, longest = i, prefix.Bits()
			}
		}
	}
	if chosen < 0 || !client.IsValid() && forAny >= 0 {
		return forAny
	}
	return chosen
}
