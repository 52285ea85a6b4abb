package v1beta1

import "net/netip"

// EndpointFor returns the place in spec.endpoints of the endpoint that a client at an
// address uses, or -1 when there is none: the one with the longest of the ranges that
// contain the address, else the first that is for any client. The invalid address is
// that of a client that doesn't know its own: only endpoints for any client serve it.
func (s *ClusterSpec) EndpointFor(client netip.Addr) int {
	client = client.Unmap().WithZone("")
	chosen, longest := -1, -1
	for i, endpoint := range s.Endpoints {
		if len(endpoint.ClientCIDRs) == 0 && chosen < 0 {
			chosen = i
		}
		for _, cidr := range endpoint.ClientCIDRs {
			prefix, err := netip.ParsePrefix(cidr)
			if err == nil && prefix.Contains(client) && prefix.Bits() > longest {
				chosen, longest = i, prefix.Bits()
			}
		}
	}
	return chosen
}
