package address

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// TestPolicy has a case for each kind of address.
func TestPolicy(t *testing.T) {
	host := prefixes("10.96.0.0/12", "10.244.0.0/16", "fd10:96::/112")
	everything := prefixes("0.0.0.0/0", "::/0", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4")
	for _, test := range []struct {
		address string
		allowed []netip.Prefix
		own     bool
		refused string // a part of the error, or "" for none
	}{
		{address: "203.0.113.7"},
		{address: "2001:db8::1"},
		{address: "10.0.0.1"}, // other private ranges are where fleets live
		{address: "172.16.0.1"},
		{address: "192.168.1.1"},
		{address: "100.64.0.1"},
		{address: "fd00::1"},
		{address: "64:ff9b::203.0.113.7"},
		{address: "64:ff9b:1::203.0.113.7"},
		{address: "::ffff:203.0.113.7"},
		{address: "2002:cb00:7107::1"},

		{address: "127.0.0.1", refused: "a loopback address"},
		{address: "127.8.9.10", refused: "a loopback address"},
		{address: "::1", refused: "a loopback address"},
		{address: "::ffff:127.0.0.1", refused: "a loopback address"},
		{address: "::127.0.0.1", refused: "a loopback address"},
		{address: "::ffff:0:127.0.0.1", refused: "a loopback address"},
		{address: "64:ff9b::127.0.0.1", refused: "a loopback address"},
		{address: "64:ff9b:1:7f00:0:100::", refused: "a loopback address"}, // RFC 6052 by a prefix of 48 bits
		{address: "64:ff9b:1::127.0.0.1", refused: "a loopback address"},
		{address: "2002:7f00:1::1", refused: "a loopback address"},
		{address: "2001:0:7f00:1::", refused: "a loopback address"},
		{address: "127.0.0.1", allowed: everything, refused: "a loopback address"},
		{address: "127.0.0.1", allowed: everything, own: true, refused: "a loopback address"},
		{address: "2001:db8::5efe:127.0.0.1", refused: "a loopback address"},
		{address: "2001:db8::200:5efe:10.96.0.1", refused: "the host cluster's Services or pods"},
		{address: "0.0.0.0", refused: "the unspecified address"},
		{address: "0.1.2.3", refused: "the unspecified address"},
		{address: "::", refused: "the unspecified address"},
		{address: "::ffff:0.0.0.0", refused: "the unspecified address"},
		{address: "169.254.1.1", refused: "a link-local address"},
		{address: "fe80::1", refused: "a link-local address"},
		{address: "fe80::1%eth0", refused: "a link-local address"},
		{address: "64:ff9b::169.254.1.1", refused: "a link-local address"},
		{address: "169.254.1.1", allowed: everything, refused: "a link-local address"},
		{address: "224.0.0.1", refused: "a multicast address"},
		{address: "ff02::1", refused: "a multicast address"},
		{address: "255.255.255.255", refused: "a multicast address"},
		{address: "239.1.1.1", allowed: everything, refused: "a multicast address"},
		{address: "169.254.169.254", refused: "the metadata service"},
		{address: "::ffff:169.254.169.254", refused: "the metadata service"},
		{address: "64:ff9b::a9fe:a9fe", refused: "the metadata service"},
		{address: "fd00:ec2::254", refused: "the metadata service"},
		{address: "fd20:ce::254", refused: "the metadata service"},
		{address: "168.63.129.16", refused: "the metadata service"},
		{address: "100.100.100.200", refused: "the metadata service"},
		{address: "192.0.0.192", refused: "the metadata service"},
		{address: "169.254.169.254", allowed: everything, own: true, refused: "the metadata service"},

		{address: "10.96.0.1", refused: "the host cluster's Services or pods"},
		{address: "10.244.3.4", refused: "the host cluster's Services or pods"},
		{address: "::ffff:10.96.0.1", refused: "the host cluster's Services or pods"},
		{address: "64:ff9b::10.96.0.1", refused: "the host cluster's Services or pods"},
		{address: "fd10:96::1", refused: "the host cluster's Services or pods"},
		{address: "10.96.0.1", own: true},
		{address: "10.96.0.1", allowed: prefixes("10.96.0.1/32")},
		{address: "10.96.0.2", allowed: prefixes("10.96.0.1/32"), refused: "the host cluster's Services or pods"},
		{address: "::ffff:10.96.0.1", allowed: prefixes("10.96.0.1/32")},
	} {
		policy := Policy{HostCIDRs: func() []netip.Prefix { return host }, Allowed: test.allowed}
		err := checks(t, policy, test.address, test.own, test.refused)
		if refusal := (&Refusal{}); err != nil && (!errors.As(err, &refusal) || refusal.Inside != strings.Contains(test.refused, "host cluster")) {
			t.Errorf("%s: %#v says whether it can be allowed", test.address, err)
		}
	}
}

// checks has a policy refuse a host with a text, or allow it where there is none, and returns
// its error.
func checks(t *testing.T, policy Policy, host string, own bool, refused string) error {
	t.Helper()
	err := policy.Check(host, own)
	if (err == nil) != (refused == "") || err != nil && !strings.Contains(err.Error(), refused) {
		t.Errorf("%q, allowed %v, own %v: %v, want %q", host, policy.Allowed, own, err, refused)
	}
	return err
}

// TestNames has what is certain of a name without DNS.
func TestNames(t *testing.T) {
	for _, test := range []struct {
		host    string
		own     bool
		refused string
	}{
		{host: "api.example.com"},
		{host: "API.example.com."},
		{host: "vcluster.team-a.svc"}, // a Service may be a cluster's: its address decides
		{host: "kubernetes.example.com"},
		{host: "localhost", refused: "a loopback address"},
		{host: "LOCALHOST.", own: true, refused: "a loopback address"},
		{host: "a.localhost", refused: "a loopback address"},
		{host: "localhost.localdomain", refused: "a loopback address"},
		{host: "metadata.google.internal", own: true, refused: "the metadata service"},
		{host: "127.1", refused: "another way"},
		{host: "2130706433", refused: "another way"},
		{host: "0x7f.0.0.1", refused: "another way"},
		{host: "\uff11\uff12\uff17.0.0.\uff11", refused: "another way"},
		{host: "", refused: "another way"},
		{host: "kubernetes", refused: "whichever cluster"},
		{host: "kubernetes.default", refused: "whichever cluster"},
		{host: "kubernetes.default.svc", refused: "whichever cluster"},
		{host: "Kubernetes.default.svc.", refused: "whichever cluster"},
		{host: "kubernetes.default.svc.cluster.local", refused: "whichever cluster"},
		{host: "kubernetes.default.svc.cluster.local", own: true},
	} {
		_ = checks(t, Policy{}, test.host, test.own, test.refused)
	}
}
