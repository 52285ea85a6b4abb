package form

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// shownEndpoints returns what v1alpha1 shows of endpoints: an entry for each
// range of clients, and the distinct CA bundles together.
func shownEndpoints(endpoints []clusterregistry.Endpoint) clusterregistry.KubernetesAPIEndpoints {
	var out clusterregistry.KubernetesAPIEndpoints
	var bundles [][]byte
	for _, endpoint := range endpoints {
		for _, cidr := range rangesOf(endpoint) {
			out.ServerEndpoints = append(out.ServerEndpoints, clusterregistry.ServerAddressByClientCIDR{ClientCIDR: cidr, ServerAddress: addressOf(endpoint.URL)})
		}
		if len(endpoint.CABundle) > 0 && !slices.ContainsFunc(bundles, func(b []byte) bool { return bytes.Equal(b, endpoint.CABundle) }) {
			bundles = append(bundles, endpoint.CABundle)
		}
	}
	for _, bundle := range bundles {
		if n := len(out.CABundle); n > 0 && out.CABundle[n-1] != '\n' {
			out.CABundle = append(out.CABundle, '\n')
		}
		out.CABundle = append(out.CABundle, bundle...)
	}
	return out
}

// rangesOf returns the ranges of an endpoint's clients; the empty one is any.
func rangesOf(endpoint clusterregistry.Endpoint) []string {
	if len(endpoint.ClientCIDRs) == 0 {
		return []string{""}
	}
	return endpoint.ClientCIDRs
}

// addressOf returns a URL as v1alpha1 shows it: without a scheme, as clients of
// 2018 expect it, unless there is more to it than a host and a port.
func addressOf(url string) string {
	host, ok := strings.CutPrefix(url, "https://")
	if !ok || host == "" || strings.ContainsAny(host, "/?#@") {
		return url
	}
	return host
}

// urlOf returns the URL of an address in v1alpha1.
func urlOf(address string) string {
	switch ip, err := netip.ParseAddr(address); {
	case address == "", strings.Contains(address, "://"):
		return address
	case err == nil && ip.Is6():
		return "https://[" + address + "]"
	}
	return "https://" + address
}

// entry is what v1alpha1 shows as one: a range of clients and their address.
type entry struct {
	cidr, url string
	// endpoint is where in v1beta1's list it comes from.
	endpoint int
}

// alike are the ways in which a written entry can be a stored one, the surest first.
var alike = []func(written, stored entry) bool{
	func(w, s entry) bool { return w.cidr == s.cidr && w.url == s.url },
	func(w, s entry) bool { return w.cidr == s.cidr },
	func(w, s entry) bool { return w.url == s.url },
}

// match returns for each written entry the endpoint of the stored entry that it
// is, or -1 for a new one.
func match(written clusterregistry.KubernetesAPIEndpoints, stored []clusterregistry.Endpoint) []int {
	var left []entry
	for i, endpoint := range stored {
		for _, cidr := range rangesOf(endpoint) {
			left = append(left, entry{cidr, endpoint.URL, i})
		}
	}
	out := slices.Repeat([]int{-1}, len(written.ServerEndpoints))
	for _, same := range alike {
		for i, w := range written.ServerEndpoints {
			if out[i] >= 0 {
				continue
			}
			wanted := entry{cidr: w.ClientCIDR, url: urlOf(w.ServerAddress)}
			if j := slices.IndexFunc(left, func(s entry) bool { return same(wanted, s) }); j >= 0 {
				out[i] = left[j].endpoint
				left = slices.Delete(left, j, j+1)
			}
		}
	}
	return out
}

// endpoints returns v1beta1's form of addresses in v1alpha1, given what of both
// is stored. An entry that is still there keeps what v1alpha1 doesn't show.
// Entries of one endpoint stay one while they have the same address.
func endpoints(written, stored clusterregistry.KubernetesAPIEndpoints, rich []clusterregistry.Endpoint) []clusterregistry.Endpoint {
	type group struct {
		endpoint int
		url      string
	}
	sameCA := bytes.Equal(written.CABundle, stored.CABundle)
	made := map[group]int{}
	names := taken{}
	var out []clusterregistry.Endpoint
	var renamed []int
	for i, from := range match(written, rich) {
		address := written.ServerEndpoints[i]
		url := urlOf(address.ServerAddress)
		key := group{from, url}
		if at, ok := made[key]; ok && address.ClientCIDR != "" && len(out[at].ClientCIDRs) > 0 {
			out[at].ClientCIDRs = append(out[at].ClientCIDRs, address.ClientCIDR)
			continue
		}
		endpoint := clusterregistry.Endpoint{CABundle: written.CABundle}
		if from >= 0 {
			endpoint = rich[from]
			endpoint.ClientCIDRs = nil
		}
		if !sameCA {
			endpoint.CABundle = written.CABundle
		}
		// Of several parts of an endpoint, the one that is where it was keeps the name.
		if from < 0 || endpoint.URL != url || !names.take(endpoint.Name) {
			renamed = append(renamed, len(out))
		}
		endpoint.URL = url
		if address.ClientCIDR != "" {
			endpoint.ClientCIDRs = []string{address.ClientCIDR}
		}
		if from >= 0 {
			made[key] = len(out)
		}
		out = append(out, endpoint)
	}
	for _, i := range renamed {
		if out[i].Name == "" || !names.take(out[i].Name) {
			out[i].Name = names.free(fmt.Sprintf("endpoint-%d", i+1))
		}
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
	left := slices.Clone(stored.ServerEndpoints)
	for i, now := range out.ServerEndpoints {
		j := slices.IndexFunc(left, func(s clusterregistry.ServerAddressByClientCIDR) bool {
			return s.ClientCIDR == now.ClientCIDR && urlOf(s.ServerAddress) == urlOf(now.ServerAddress)
		})
		if j >= 0 {
			out.ServerEndpoints[i] = left[j]
			left = slices.Delete(left, j, j+1)
		}
	}
	return out
}
