// Package controlplane reads where Cluster API says that a control plane is, for all programs
// that make entries of its Clusters.
package controlplane

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// URL returns the https URL of spec.controlPlaneEndpoint of a Cluster; empty when there is
// none yet. Cluster API gives the host no form: it is a name or an address, an IPv6 one with
// brackets or without, and of EKS the URL that AWS calls the endpoint.
func URL(host string, port int64) (string, error) {
	if host == "" || port == 0 {
		return "", nil
	}
	if port < 1 || port > 65535 {
		return "", fmt.Errorf("spec.controlPlaneEndpoint.port %d is not the number of a port", port)
	}
	name := host
	if rest, found := strings.CutPrefix(strings.ToLower(host), "https://"); found {
		name = strings.TrimSuffix(rest, "/")
		if at, own, err := net.SplitHostPort(name); err == nil && own == strconv.FormatInt(port, 10) {
			name = at
		}
	}
	if inner, found := strings.CutPrefix(name, "["); found {
		name = strings.TrimSuffix(inner, "]")
	}
	if _, err := netip.ParseAddr(name); err != nil && len(validation.IsDNS1123Subdomain(strings.ToLower(name))) > 0 {
		return "", fmt.Errorf("spec.controlPlaneEndpoint.host %q is neither an IP address nor the name of a host, nor an https URL of one alone", host)
	}
	return (&url.URL{Scheme: "https", Host: net.JoinHostPort(name, strconv.FormatInt(port, 10))}).String(), nil
}
