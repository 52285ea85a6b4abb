// Package address decides where entries of a registry may lead programs. Anyone who can
// write a cluster chooses an address, so all that connects to one, or hands one to others,
// asks here: probes, ClusterProfiles, kubeconfigs and the provider.
package address

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Policy says which hosts an entry may lead to. The zero value knows nothing of the
// host cluster, and refuses only what is never allowed.
type Policy struct {
	// HostCIDRs returns the ranges of the host cluster's Services and pods, which
	// only the host's own entry and Allowed open. Nil means that there are none.
	HostCIDRs func() []netip.Prefix
	// Allowed are ranges among HostCIDRs that may be dialed nevertheless. They
	// open nothing else: loopback stays refused even when they contain it.
	Allowed []netip.Prefix
}

// Refusal is the error for an address that may not be dialed.
type Refusal struct {
	// What is the kind of address, such as "a loopback address".
	What string
	// Inside is true for an address of the host cluster, which can be allowed.
	Inside bool
}

// Loopback is what a Refusal says of an address of the computer itself.
const Loopback = "a loopback address"

func (r *Refusal) Error() string { return "it leads to " + r.What }

// Check returns a *Refusal for a host that no entry may lead to, and else nil: of an IP
// address all that is to be said, of a name what is certain without DNS. So whoever dials
// a name asks again with the address that it dials, and whoever hands it to others has
// dialed it. Own says that it is for the host cluster's own entry.
func (p Policy) Check(host string, own bool) error {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		return p.ip(ip, own)
	}
	if what := neverNamed(host, own); what != "" {
		return &Refusal{What: what}
	}
	return nil
}

func (p Policy) ip(address netip.Addr, own bool) error {
	var host []netip.Prefix
	if p.HostCIDRs != nil && !own {
		host = p.HostCIDRs()
	}
	for _, form := range forms(address.Unmap().WithZone("")) {
		if what := never(form); what != "" {
			return &Refusal{What: what}
		}
		if contains(host, form) && !contains(p.Allowed, form) {
			return &Refusal{What: "an address of the host cluster's Services or pods", Inside: true}
		}
	}
	return nil
}

// neverNamed returns what a name is that no entry may have, or "".
func neverNamed(host string, own bool) string {
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	case last == "localhost" || host == "localhost.localdomain":
		return Loopback
	case host == "metadata.google.internal" || host == "instance-data.ec2.internal":
		return "the metadata service of a cloud"
	case last == "" || last[0] >= '0' && last[0] <= '9' || strings.ContainsFunc(host, func(r rune) bool { return r > '~' }):
		// No top-level domain begins with a digit, but 127.1, 2130706433 and 0x7f.0.0.1
		// are addresses to many programs, and so are digits of other scripts.
		return "an address in a form that programs may read in another way"
	case own:
		return ""
	case host == "kubernetes", len(labels) > 1 && labels[0] == "kubernetes" && labels[1] == "default" && (len(labels) == 2 || labels[2] == "svc"):
		// Each cluster's name for itself: tools that find it don't use the entry's CA and
		// credentials, but those that they have for the cluster that they run in.
		return "the API server of whichever cluster a client runs in"
	}
	return ""
}

func contains(ranges []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(address) })
}

// metadata are the addresses at which clouds hand out credentials to their machines,
// besides those that are link-local anyway.
var metadata = map[netip.Addr]string{
	netip.MustParseAddr("fd00:ec2::254"):       "AWS",
	netip.MustParseAddr("fd00:ec2::23"):        "AWS (EKS Pod Identity)",
	netip.MustParseAddr("fd20:ce::254"):        "Google Cloud",
	netip.MustParseAddr("168.63.129.16"):       "Azure",
	netip.MustParseAddr("100.100.100.200"):     "Alibaba Cloud",
	netip.MustParseAddr("192.0.0.192"):         "Oracle Cloud",
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"):  "Oracle Cloud",
	netip.MustParseAddr("fd00:42::42"):         "Scaleway",
	netip.MustParseAddr("fd00:a9fe:a9fe::1"):   "Akamai",
	netip.MustParseAddr("169.254.169.254"):     "most clouds",
	netip.MustParseAddr("169.254.170.2"):       "AWS (ECS)",
	netip.MustParseAddr("169.254.170.23"):      "AWS (EKS Pod Identity)",
	netip.MustParseAddr("fe80::a9fe:a9fe"):     "OpenStack",
	netip.MustParseAddr("fd00:500::a9fe:a9fe"): "IBM Cloud",
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
)

// never returns what an address is that nothing allows, or "".
func never(address netip.Addr) string {
	switch cloud, known := metadata[address]; {
	case known:
		return fmt.Sprintf("the metadata service of a cloud (%s)", cloud)
	case address.IsUnspecified() || thisNetwork.Contains(address):
		return "the unspecified address"
	case address.IsLoopback():
		return Loopback
	case address.IsLinkLocalUnicast():
		return "a link-local address"
	case address.IsMulticast() || address == broadcast:
		return "a multicast address"
	}
	return ""
}

// forms returns an address and every IPv4 address that a gateway or the kernel could
// make of it: all of them must be allowed. One that is mapped into IPv6 (RFC 4291,
// 2.5.5.2) is expected in its own notation.
func forms(address netip.Addr) []netip.Addr {
	out := []netip.Addr{address}
	if !address.Is6() {
		return out
	}
	b := address.As16()
	v4 := func(at ...int) { out = append(out, netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]})) }
	for _, prefix := range []netip.Prefix{compatible, translated, nat64} {
		if prefix.Contains(address) {
			v4(12, 13, 14, 15)
		}
	}
	if nat64Local.Contains(address) { // RFC 6052, 2.2: by the length of the prefix, 48, 56, 64 or 96
		for _, at := range [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}} {
			if b[at[0]] != 0 { // the padding of another length, and no address of anything
				v4(at[:]...)
			}
		}
	}
	if sixToFour.Contains(address) {
		v4(2, 3, 4, 5)
	}
	if b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // ISATAP, under any prefix: RFC 5214, 6.1
		v4(12, 13, 14, 15)
	}
	if teredo.Contains(address) {
		v4(4, 5, 6, 7)
		out = append(out, netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	return out
}

// Where IPv6 addresses contain IPv4 ones.
var (
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291, 2.5.5.1
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")       // RFC 4380
)
