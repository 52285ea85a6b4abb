// Package hosts reads where credentials may go, and whether an address is there.
package hosts

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Hosts are where credentials may go. The zero value is nowhere.
type Hosts struct {
	// names are whole names, and suffixes begin with the dot before what they end names with.
	names, suffixes []string
	ranges          []netip.Prefix
}

// leastBits is the length of the largest range: more addresses are no one's.
const leastBits = 8

// hostName is the name of a host of at least two parts, the last of which is not of an address.
var hostName = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z]([-a-z0-9]*[a-z0-9])?$`)

// Parse returns the hosts that texts say: api.example.com, *.example.com or 10.8.0.0/16.
func Parse(texts []string) (out Hosts, err error) {
	if len(texts) == 0 {
		return Hosts{}, fmt.Errorf("it needs hosts, where its credentials may go")
	}
	for _, text := range texts {
		below, isSuffix := strings.CutPrefix(text, "*.")
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err == nil && prefix.Bits() >= leastBits && prefix == prefix.Masked() && !prefix.Addr().Is4In6():
			out.ranges = append(out.ranges, prefix)
		case isSuffix && hostName.MatchString(below):
			out.suffixes = append(out.suffixes, "."+below)
		case hostName.MatchString(text):
			out.names = append(out.names, text)
		default:
			return Hosts{}, fmt.Errorf("hosts has %q: write a name in lowercase, such as api.example.com, all names below one of at least two parts, such as *.example.com, or a range, such as 10.8.0.0/16, of /%d at most", text, leastBits)
		}
	}
	return out, nil
}

// Lead reports whether an https URL leads to one of the hosts. A name is not looked up: only
// its own owner decides where it leads.
func (h Hosts) Lead(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	name := strings.ToLower(u.Hostname())
	if ip, err := netip.ParseAddr(name); err == nil {
		ip = ip.Unmap()
		return slices.ContainsFunc(h.ranges, func(r netip.Prefix) bool { return r.Contains(ip) })
	}
	name = strings.TrimSuffix(name, ".")
	return hostName.MatchString(name) && (slices.Contains(h.names, name) ||
		slices.ContainsFunc(h.suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) }))
}
