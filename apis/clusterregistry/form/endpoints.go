package form

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

type (
	endpointList = []clusterregistry.Endpoint
	addressList  = []clusterregistry.ServerAddressByClientCIDR
)

// endpoints returns v1beta1's form of addresses in v1alpha1, given what of both
// is stored. An endpoint that is still there keeps what v1alpha1 doesn't show,
// and its place, unless the writer put the entries into another order.
func endpoints(written, stored clusterregistry.KubernetesAPIEndpoints, rich endpointList) endpointList {
	parts := partsOf(written.ServerEndpoints, rich)
	if !reordered(stored.ServerEndpoints, written.ServerEndpoints, rich) {
		slices.SortStableFunc(parts, func(a, b *part) int { return a.rank() - b.rank() })
	}
	sameCA := bytes.Equal(written.CABundle, stored.CABundle)
	names := taken{}
	var out endpointList
	for _, p := range parts {
		endpoint := clusterregistry.Endpoint{CABundle: written.CABundle}
		if p.from >= 0 {
			endpoint = rich[p.from]
			// Of several parts of an endpoint, the one that is where it was keeps the name.
			if endpoint.URL != p.url || !names.take(endpoint.Name) {
				p.rename = true
			}
		} else {
			p.rename = true
		}
		if !sameCA {
			endpoint.CABundle = written.CABundle
		}
		endpoint.URL, endpoint.ClientCIDRs = p.url, p.ranges(rich)
		out = append(out, endpoint)
	}
	for i, p := range parts {
		if p.rename && (out[i].Name == "" || !names.take(out[i].Name)) {
			out[i].Name = names.free(fmt.Sprintf("endpoint-%d", i+1))
		}
	}
	return out
}

// part is an endpoint as v1alpha1's entries describe it.
type part struct {
	// from is the stored endpoint that it is or is a part of; -1 is a new one.
	from  int
	url   string
	cidrs []string
	// any says that its ranges come from an entry for any client.
	any bool
	// rename says that it can't simply keep the name of the stored endpoint.
	rename bool
}

// rank orders parts as the stored endpoints are; new ones come last.
func (p *part) rank() int {
	if p.from < 0 {
		return int(^uint(0) >> 1)
	}
	return p.from
}

// ranges returns the part's ranges as v1beta1 has them: none for any client,
// unless the stored endpoint spells that out; else those that stay, in their
// order, and then the new ones.
func (p *part) ranges(rich endpointList) []string {
	var before []string
	if p.from >= 0 {
		before = rich[p.from].ClientCIDRs
	}
	spelledOut := slices.Contains(before, anyIPv4) || slices.Contains(before, anyIPv6)
	if len(p.cidrs) == 2 && slices.Contains(p.cidrs, anyIPv4) && slices.Contains(p.cidrs, anyIPv6) && (p.any || !spelledOut) {
		return nil
	}
	place := map[string]int{}
	for i, cidr := range before {
		place[cidr] = i - len(before)
	}
	slices.SortStableFunc(p.cidrs, func(a, b string) int { return place[a] - place[b] })
	return p.cidrs
}

// partsOf gathers v1alpha1's entries into endpoints. Entries of one stored
// endpoint stay one while they have the same address. A new entry is an endpoint
// of its own, but twins are one.
func partsOf(written addressList, rich endpointList) []*part {
	type place struct {
		from int
		url  string
	}
	var out []*part
	made := map[place]*part{}
	entries := entriesOf(written)
	partOf := make([]*part, len(entries))
	twin := twins(entries)
	match := match(entries, entriesOfEndpoints(rich))
	for i, e := range entries {
		from, p := match[i], (*part)(nil)
		if from < 0 && twin[i] >= 0 {
			from, p = match[twin[i]], partOf[twin[i]]
		}
		if from >= 0 {
			p = made[place{from, e.url}]
		}
		fromAny := written[e.from].ClientCIDR == ""
		if p == nil {
			p = &part{from: from, url: e.url, any: fromAny}
			out = append(out, p)
		}
		if from >= 0 {
			made[place{from, e.url}] = p
		}
		p.cidrs, p.any, partOf[i] = append(p.cidrs, e.cidr), p.any && fromAny, p
	}
	return out
}

// reordered reports whether the endpoints that two lists of addresses have in
// common come in another order in the second.
func reordered(before, after addressList, rich endpointList) bool {
	order := func(list addressList) []int {
		var out []int
		seen := make([]bool, len(rich))
		for _, from := range match(entriesOf(list), entriesOfEndpoints(rich)) {
			if from >= 0 && !seen[from] {
				seen[from] = true
				out = append(out, from)
			}
		}
		return out
	}
	was, is := order(before), order(after)
	common := func(from int) bool { return !slices.Contains(was, from) || !slices.Contains(is, from) }
	return !slices.Equal(slices.DeleteFunc(slices.Clone(was), common), slices.DeleteFunc(slices.Clone(is), common))
}

// entry is a range of clients and their address. An entry for any client is
// two, one for each family of addresses.
type entry struct {
	cidr, url string
	// from is where in its list the entry comes from.
	from int
}

func entriesOf(list addressList) []entry {
	var out []entry
	for i, address := range list {
		for _, cidr := range rangesOf(address.ClientCIDR) {
			out = append(out, entry{cidr, urlOf(address.ServerAddress), i})
		}
	}
	return out
}

func entriesOfEndpoints(list endpointList) []entry {
	var out []entry
	for i, endpoint := range list {
		for _, cidr := range rangesOf(endpoint.ClientCIDRs...) {
			out = append(out, entry{cidr, endpoint.URL, i})
		}
	}
	return out
}

// alike are the ways in which a written entry can be a stored one, the surest first.
var alike = []func(entry) entry{
	func(e entry) entry { return entry{cidr: e.cidr, url: e.url} },
	func(e entry) entry { return entry{cidr: e.cidr} },
	func(e entry) entry { return entry{url: e.url} },
}

// match returns for each written entry where the stored entry that it is comes
// from, or -1 for a new one. The lists may be as long as a request can be.
func match(written, stored []entry) []int {
	out := slices.Repeat([]int{-1}, len(written))
	used := make([]bool, len(stored))
	for _, key := range alike {
		free := map[entry][]int{}
		for j, s := range stored {
			if !used[j] {
				free[key(s)] = append(free[key(s)], j)
			}
		}
		for i, w := range written {
			k := key(w)
			if candidates := free[k]; out[i] < 0 && len(candidates) > 0 {
				out[i], used[candidates[0]], free[k] = stored[candidates[0]].from, true, candidates[1:]
			}
		}
	}
	return out
}

const anyIPv4, anyIPv6 = "0.0.0.0/0", "::/0"

// otherFamily leads from all of one family of addresses to all of the other.
var otherFamily = map[string]string{anyIPv4: anyIPv6, anyIPv6: anyIPv4}

// rangesOf returns ranges as clients of v1alpha1 can read them: these parse each,
// so that any client is all of IPv4 and all of IPv6.
func rangesOf(cidrs ...string) []string {
	if len(cidrs) == 0 || len(cidrs) == 1 && cidrs[0] == "" {
		return []string{anyIPv4, anyIPv6}
	}
	return cidrs
}

// twins returns for each entry the place of its twin, or -1: an entry for all of
// IPv4 and one for all of IPv6 with one address are what v1beta1 calls an endpoint
// for any client.
func twins(entries []entry) []int {
	out := slices.Repeat([]int{-1}, len(entries))
	open := map[entry][]int{}
	for i, e := range entries {
		other, ok := otherFamily[e.cidr]
		if !ok {
			continue
		}
		key := entry{cidr: other, url: e.url}
		if waiting := open[key]; len(waiting) > 0 {
			j := waiting[len(waiting)-1]
			out[i], out[j], open[key] = j, i, waiting[:len(waiting)-1]
			continue
		}
		key.cidr = e.cidr
		open[key] = append(open[key], i)
	}
	return out
}

// Twins returns for each of v1alpha1's entries the place of the one that says
// together with it what one endpoint for any client says in v1beta1, or -1.
func Twins(list []clusterregistry.ServerAddressByClientCIDR) []int {
	var entries []entry
	for _, address := range list {
		entries = append(entries, entry{cidr: address.ClientCIDR, url: urlOf(address.ServerAddress)})
	}
	return twins(entries)
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
