package v1beta1

import "net/netip"

// EndpointFor returns the endpoint that a client at an address uses: the one with
// the longest range that contains the address, and else the first one for any
// client. Endpoints without a URL don't count. The zero address is that of a client
// that doesn't know its own: only endpoints for any client are for it. It is false
// when no endpoint is for the client.
func EndpointFor(endpoints []Endpoint, client netip.Addr) (Endpoint, bool) {
	var chosen Endpoint
	longest := -1 // bits of the range; one for any client has none
	client = client.Unmap()
	found := false
	for _, endpoint := range endpoints {
		if endpoint.URL == "" {
			continue
		}
		if len(endpoint.ClientCIDRs) == 0 && !found {
			chosen, found = endpoint, true
		}
		for _, cidr := range endpoint.ClientCIDRs {
			prefix, err := netip.ParsePrefix(cidr)
			if err != nil || !prefix.Contains(client) && (client.IsValid() || prefix.Bits() != 0) || prefix.Bits() <= longest {
				continue
			}
			chosen, longest, found = endpoint, prefix.Bits(), true
		}
	}
	return chosen, found
}
