package validation

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// isIP reports whether host is an IP address, an IPv6 one perhaps in brackets.
func isIP(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host, ok = strings.CutSuffix(inner, "]")
		if ip, err := netip.ParseAddr(host); !ok || err != nil || !ip.Is6() {
			return false
		}
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == ""
}

// hostPort returns what is wrong with "host" or "host:port", or "". Like all such
// sentences it doesn't repeat what was given: that may hold a credential.
func hostPort(address string) string {
	host, port := address, ""
	if strings.Contains(address, ":") {
		var err error
		if host, port, err = net.SplitHostPort(address); err != nil {
			return "it is not a host with a port"
		}
		if n, err := strconv.Atoi(port); err != nil || len(validation.IsValidPortNum(n)) > 0 {
			return "the port is not a number from 1 to 65535"
		}
	}
	if isIP(host) {
		return ""
	}
	if strings.HasPrefix(address, "[") {
		return "what is in brackets is not an IPv6 address"
	}
	// A name that looks like an IPv4 address is a mistyped one.
	if last := host[strings.LastIndex(host, ".")+1:]; last != "" && strings.Trim(last, "0123456789") == "" {
		return "the host is neither an IP address nor a DNS name"
	}
	// Upper case and a final dot are legal in DNS, and old clients wrote them.
	if faults := validation.IsDNS1123Subdomain(strings.ToLower(strings.TrimSuffix(host, "."))); len(faults) > 0 {
		return "the host is not a DNS name"
	}
	return ""
}

// httpsURL returns what is wrong with the URL of an API server or issuer, or "".
func httpsURL(address string) string {
	return bareURL(address, "must be an https URL: an API server is not spoken to without TLS", "https")
}

// proxyURL returns what is wrong with the URL of a proxy, or "".
func proxyURL(address string) string {
	return bareURL(address, "must be an http, https or socks5 URL", "http", "https", "socks5")
}

// bareURL returns what is wrong with a URL that names a host and perhaps a path
// and nothing else, or "". The fault is what a URL of another scheme gets.
func bareURL(address, fault string, schemes ...string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		// The parser's own error repeats the address, credentials included.
		return "must be a URL that parses, such as https://api.example.com:6443"
	case !slices.Contains(schemes, u.Scheme):
		return fault
	case u.User != nil:
		return "must not contain a user or password: the registry holds pointers, never credentials"
	case u.RawQuery != "" || u.ForceQuery:
		return "must not contain a query (?...)"
	case u.Fragment != "" || strings.HasSuffix(address, "#"):
		return "must not contain a fragment (#...)"
	case u.Hostname() == "":
		return "must name a host, such as https://api.example.com:6443"
	}
	if fault := hostPort(u.Host); fault != "" && !isIP(u.Host) {
		return "must be a URL whose host is right: " + fault
	}
	if what := credential(address); what != "" {
		return "must not contain what looks like " + what + ": the registry holds pointers, never credentials"
	}
	return ""
}
