package validation

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// endpoints returns the faults of v1beta1's form of where a cluster is.
func endpoints(endpoints []clusterregistry.Endpoint, known *bundles, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	names, ranges := map[string]bool{}, map[netip.Prefix]bool{}
	seen, distinct := map[string]bool{}, map[*field.Path][]byte{}
	for i, endpoint := range endpoints {
		at := path.Index(i)
		faults = append(faults, name(endpoint.Name, names, at.Child("name"))...)
		if endpoint.Name != "" {
			for _, fault := range validation.IsDNS1123Label(endpoint.Name) {
				faults = append(faults, field.Invalid(at.Child("name"), endpoint.Name, fault))
			}
		}
		faults = append(faults, lengths(at, MaxURL, map[string]string{"url": endpoint.URL, "proxyURL": endpoint.ProxyURL})...)
		if endpoint.URL != "" && len(endpoint.URL) <= MaxURL {
			faults = append(faults, invalid(at.Child("url"), endpoint.URL, httpsURL(endpoint.URL))...)
		}
		faults = append(faults, clientCIDRs(endpoint.ClientCIDRs, ranges, at.Child("clientCIDRs"))...)
		if !seen[string(endpoint.CABundle)] {
			seen[string(endpoint.CABundle)] = true
			distinct[at.Child("caBundle")] = endpoint.CABundle
		}
		if endpoint.TLSServerName != "" && !isIP(endpoint.TLSServerName) {
			for _, fault := range validation.IsDNS1123Subdomain(strings.ToLower(endpoint.TLSServerName)) {
				faults = append(faults, field.Invalid(at.Child("tlsServerName"), endpoint.TLSServerName, fault))
			}
		}
		if endpoint.ProxyURL != "" && len(endpoint.ProxyURL) <= MaxURL {
			faults = append(faults, invalid(at.Child("proxyURL"), endpoint.ProxyURL, proxyURL(endpoint.ProxyURL))...)
		}
	}
	return append(faults, caBundles(distinct, known)...)
}

// clientCIDRs returns the faults of an endpoint's ranges; seen are those of the
// endpoints before it.
func clientCIDRs(cidrs []string, seen map[netip.Prefix]bool, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	for i, cidr := range cidrs {
		faults = append(faults, clientCIDR(cidr, seen, path.Index(i), "must be a range in CIDR notation, such as 10.0.0.0/8 or 2001:db8::/32; no ranges at all mean any client")...)
	}
	return faults
}

// clientCIDR returns the faults of a range; seen are those before it. A range of
// two addresses would leave it to chance which of them a client takes.
func clientCIDR(cidr string, seen map[netip.Prefix]bool, path *field.Path, fault string) field.ErrorList {
	prefix, err := netip.ParsePrefix(cidr)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, cidr, fault)}
	case prefix.Addr().Is4In6():
		return field.ErrorList{field.Invalid(path, cidr, "must be a range of IPv4 in its own notation, such as 10.0.0.0/8: clients don't agree what ::ffff:10.0.0.0/104 contains")}
	case seen[prefix.Masked()]:
		return field.ErrorList{field.Duplicate(path, cidr)}
	}
	seen[prefix.Masked()] = true
	return nil
}

// name returns the faults of the name of a list's entry; seen are those of the
// entries before it.
func name(name string, seen map[string]bool, path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "it tells the entry from the others")}
	case seen[name]:
		return field.ErrorList{field.Duplicate(path, name)}
	}
	seen[name] = true
	return nil
}

// invalid returns a fault as a list, which is empty for none.
func invalid(path *field.Path, value, fault string) field.ErrorList {
	if fault == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fault)}
}
