package form

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// shownEndpoints returns what v1alpha1 shows of endpoints: an entry for each
// range of clients, and the distinct CA bundles together. Clients of v1alpha1
// take the first range that contains their address, those of v1beta1 the longest:
// so the longest come first. The address is the whole URL, because client-go
// speaks to a bare host without TLS when it has no CA bundle for it.
func shownEndpoints(endpoints endpointList) clusterregistry.KubernetesAPIEndpoints {
	out := clusterregistry.KubernetesAPIEndpoints{CABundle: bundlesOf(endpoints)}
	type ranked struct {
		clusterregistry.ServerAddressByClientCIDR
		bits int
	}
	var list []ranked
	for _, endpoint := range endpoints {
		for _, cidr := range rangesOf(endpoint.ClientCIDRs...) {
			bits := -1 // any client comes after all who are named
			if len(endpoint.ClientCIDRs) > 0 {
				bits = lengthOf(cidr)
			}
			list = append(list, ranked{clusterregistry.ServerAddressByClientCIDR{ClientCIDR: cidr, ServerAddress: endpoint.URL}, bits})
		}
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(b.bits, a.bits) })
	for _, item := range list {
		out.ServerEndpoints = append(out.ServerEndpoints, item.ServerAddressByClientCIDR)
	}
	return out
}

// lengthOf returns the length of a range. A range of IPv4 that is written as one
// of IPv6 has that of the former, by which clients compare it.
func lengthOf(cidr string) int {
	prefix, err := netip.ParsePrefix(cidr)
	if err == nil && prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
		return prefix.Bits() - 96
	}
	return prefix.Bits() // -1 for what is no range
}

// bundlesOf returns the distinct CA bundles of endpoints together. A single one is that of
// an endpoint, not a copy.
func bundlesOf(endpoints endpointList) []byte {
	var single []byte
	for i, endpoint := range endpoints {
		switch {
		case len(endpoint.CABundle) == 0 || bytes.Equal(endpoint.CABundle, single):
		case single != nil:
			return joined(endpoints[i:], single)
		default:
			single = endpoint.CABundle
		}
	}
	return slices.Clip(single)
}

// joined returns a CA bundle and what others there are of endpoints, in a slice of its own.
func joined(endpoints endpointList, first []byte) []byte {
	out := bytes.Clone(first)
	seen := map[string]bool{"": true, string(first): true}
	for _, endpoint := range endpoints {
		if seen[string(endpoint.CABundle)] {
			continue
		}
		seen[string(endpoint.CABundle)] = true
		if n := len(out); n > 0 && out[n-1] != '\n' {
			out = append(out, '\n')
		}
		out = append(out, endpoint.CABundle...)
	}
	return out
}

// spelledEndpoints returns v1alpha1's form of what v1beta1 wrote, given what
// v1alpha1 shows of it and showed of what was stored. What is shown as before is
// spelled as before.
func spelledEndpoints(shown, before, stored clusterregistry.KubernetesAPIEndpoints) clusterregistry.KubernetesAPIEndpoints {
	out := shown
	if bytes.Equal(shown.CABundle, before.CABundle) {
		out.CABundle = stored.CABundle
	}
	if slices.Equal(shown.ServerEndpoints, before.ServerEndpoints) {
		out.ServerEndpoints = stored.ServerEndpoints
		return out
	}
	out.ServerEndpoints = nil
	spelled := spelling(shown.ServerEndpoints, stored.ServerEndpoints)
	used := make([]bool, len(stored.ServerEndpoints))
	for i, address := range shown.ServerEndpoints {
		switch at := spelled[i]; {
		case at < 0:
			out.ServerEndpoints = append(out.ServerEndpoints, address)
		case !used[at]: // the second half of an entry for any client is in the first
			used[at] = true
			out.ServerEndpoints = append(out.ServerEndpoints, stored.ServerEndpoints[at])
		}
	}
	return out
}

// spelling returns for each shown entry the stored one that says the same, or -1.
// One for any client says as much as two shown ones, and counts when both are there.
func spelling(shown, stored addressList) []int {
	free := map[entry][]int{}
	for _, e := range entriesOf(stored) {
		key := entry{cidr: e.cidr, url: e.url}
		free[key] = append(free[key], e.from)
	}
	out, halves := slices.Repeat([]int{-1}, len(shown)), make([]int, len(stored))
	for i, e := range shown {
		key := entry{cidr: e.ClientCIDR, url: urlOf(e.ServerAddress)}
		if candidates := free[key]; len(candidates) > 0 {
			out[i], free[key] = candidates[0], candidates[1:]
			halves[candidates[0]]++
		}
	}
	for i, at := range out {
		if at >= 0 && halves[at] < len(rangesOf(stored[at].ClientCIDR)) {
			out[i] = -1
		}
	}
	return out
}
