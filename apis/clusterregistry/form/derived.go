package form

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// DeriveV1alpha1 makes v1alpha1's form of a cluster that is stored in that of
// v1beta1 alone, as every release does: a client may read from a server of one
// release and write to one of another, which takes for a change what it would show
// otherwise. What is better for clients is stored beside it: see RenewV1alpha1.
func DeriveV1alpha1(spec *clusterregistry.ClusterSpec) {
	FillV1alpha1(spec)
	spec.KubernetesAPIEndpoints = derivedEndpoints(spec.Endpoints)
}

// RenewV1alpha1 shows what a client of v1beta1 has written so that clients of 2018
// can use it, when what is stored is shown as releases up to v0.3.0 derived it.
func RenewV1alpha1(written, stored *clusterregistry.ClusterSpec) {
	if Outdated(stored) {
		written.KubernetesAPIEndpoints = shownEndpoints(written.Endpoints)
	}
}

// Outdated reports whether v1alpha1 shows a cluster as releases up to v0.3.0
// derived it from v1beta1, which clients of 2018 can't use: without ranges for any
// client, and without the scheme of URLs. Where v0.3.0 has changed a part of what
// this release wrote, only that part has no scheme. Endpoints that all have the
// names that v1alpha1 gives were most likely written there, and stay as they were.
func Outdated(spec *clusterregistry.ClusterSpec) bool {
	plain := !slices.ContainsFunc(spec.Endpoints, func(e clusterregistry.Endpoint) bool { return !plainName.MatchString(e.Name) })
	is, derived := spec.KubernetesAPIEndpoints, derivedEndpoints(spec.Endpoints)
	return !plain && bytes.Equal(is.CABundle, derived.CABundle) &&
		slices.EqualFunc(is.ServerEndpoints, derived.ServerEndpoints, func(a, b clusterregistry.ServerAddressByClientCIDR) bool {
			return a.ClientCIDR == b.ClientCIDR && urlOf(a.ServerAddress) == urlOf(b.ServerAddress)
		}) &&
		!slices.Equal(is.ServerEndpoints, shownEndpoints(spec.Endpoints).ServerEndpoints)
}

var plainName = regexp.MustCompile(`^endpoint-[0-9]+(-[0-9]+)?$`)

// derivedEndpoints returns what every release shows in v1alpha1 of endpoints whose
// form there is not stored.
func derivedEndpoints(endpoints endpointList) clusterregistry.KubernetesAPIEndpoints {
	out := clusterregistry.KubernetesAPIEndpoints{CABundle: bundlesOf(endpoints)}
	for _, endpoint := range endpoints {
		cidrs := endpoint.ClientCIDRs
		if len(cidrs) == 0 {
			cidrs = []string{""}
		}
		for _, cidr := range cidrs {
			out.ServerEndpoints = append(out.ServerEndpoints, clusterregistry.ServerAddressByClientCIDR{ClientCIDR: cidr, ServerAddress: bareAddress(endpoint.URL)})
		}
	}
	return out
}

// bareAddress returns a URL without its scheme, unless there is more to it than a
// host and a port.
func bareAddress(url string) string {
	host, ok := strings.CutPrefix(url, "https://")
	if !ok || host == "" || strings.ContainsAny(host, "/?#@") {
		return url
	}
	return host
}
