package format

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/probe"
)

// Known is what is known of the endpoint of an entry besides what the entry says. The zero
// value knows nothing: no one is led there.
type Known struct {
	// Asked says that Result is of this very endpoint.
	Asked  bool
	Result probe.Result
	// Verified says that this process has had a handshake with this very endpoint.
	Verified bool
	// Failures counts the probes in a row that have not reached it.
	Failures int
}

// Refused reports whether the policy for addresses refuses the endpoint.
func (k Known) Refused() bool { return k.Asked && k.Result.Reason == probe.ReasonAddressRefused }

// Missing says why an endpoint is not verified.
func (k Known) Missing(endpoint v1beta1.Endpoint) string {
	found := "it is about to be asked"
	if k.Asked {
		found = strings.TrimSuffix(k.Result.Message, ".")
	}
	return fmt.Sprintf("endpoint %q has not shown a certificate that %s has signed: %s. It is published once it has.", endpoint.Name, signer(endpoint), found)
}

// signer is by whom the certificate of an endpoint has to be signed. Without a CA bundle it is
// by whom probes trust then, and clients as well.
func signer(endpoint v1beta1.Endpoint) string {
	if len(endpoint.CABundle) == 0 {
		return "a public CA (the endpoint has no caBundle)"
	}
	return "its caBundle"
}

// EndpointAt returns the place of the endpoint of a cluster that is published, -1 for none: that
// for any client, since whoever reads an object may be anywhere.
func EndpointAt(cluster *v1beta1.Cluster) int { return cluster.Spec.EndpointFor(netip.Addr{}) }

// EndpointOf returns the endpoint of a cluster that is published.
func EndpointOf(cluster *v1beta1.Cluster) (v1beta1.Endpoint, bool) {
	at := EndpointAt(cluster)
	if at < 0 {
		return v1beta1.Endpoint{}, false
	}
	return cluster.Spec.Endpoints[at], true
}

// SameEndpoint reports whether two endpoints lead to the same place.
func SameEndpoint(a, b v1beta1.Endpoint) bool {
	return a.URL == b.URL && a.TLSServerName == b.TLSServerName && a.ProxyURL == b.ProxyURL && bytes.Equal(a.CABundle, b.CABundle)
}

// Place returns where an endpoint leads, in one form: by that, consumers tell clusters apart.
func Place(endpoint v1beta1.Endpoint) string { return strings.TrimRight(endpoint.URL, "/") }

// Way is a way to sign in that a namespace allows.
type Way struct {
	// Provider is the name by which a client finds its plugin.
	Provider string
	v1beta1.Access
}

// Offer is what an entry would have published in a namespace.
type Offer struct {
	Endpoint v1beta1.Endpoint
	Ways     []Way
	// Left are the names of providers that the namespace does not allow.
	Left []string
}

// ReasonOccupied is why nothing is published of a cluster that consumers would take for another.
const ReasonOccupied = "ServerTaken"

// ReasonMistaken is why nothing is published of a cluster at whose endpoint another one answers.
const ReasonMistaken = "IdentityMismatch"

// Mistaken reports whether another cluster answers than an entry is for. Such an entry has
// no object: consumers that have connected, as by multicluster-runtime, keep their client
// when a profile loses its providers or is not healthy, and drop it when the profile is gone.
func Mistaken(cluster *v1beta1.Cluster) bool {
	return cluster.Status != nil && meta.IsStatusConditionFalse(cluster.Status.Conditions, v1beta1.ConditionIdentityVerified)
}

// OfferOf returns what an entry would have published in a namespace, or why there is nothing:
// a way for each one for controllers that the namespace allows.
func OfferOf(cluster *v1beta1.Cluster, in Target) (Offer, *Withheld) {
	if Mistaken(cluster) {
		return Offer{}, &Withheld{ReasonMistaken, "Another cluster answers than the entry is for (IdentityVerified of the registry is False): no one is led there.", Delete}
	}
	endpoint, ok := EndpointOf(cluster)
	if !ok || endpoint.URL == "" {
		return Offer{}, &Withheld{"NoEndpoint", "The entry has no endpoint with a URL for any client, which is one without clientCIDRs.", Sweep}
	}
	out, names := Offer{Endpoint: endpoint}, map[string]bool{}
	for _, access := range cluster.Spec.Access {
		name := providerName(access)
		if access.Audience != v1beta1.AudienceController || names[name] {
			continue // the first of a name counts, as it does for those who read the registry
		}
		names[name] = true
		if !in.allows(name) {
			out.Left = append(out.Left, name)
			continue
		}
		out.Ways = append(out.Ways, Way{Provider: name, Access: access})
	}
	switch {
	case len(names) == 0:
		return out, &Withheld{"NoAccess", "The entry has no access with the audience Controller.", Sweep}
	case len(out.Ways) == 0:
		return out, &Withheld{"ProviderNotAllowed", fmt.Sprintf("None of the entry's providers may be published in this namespace: %s. If clients here have a plugin of that name, add it to the providers, or to signIn, of the export in spec.controllers.exports (--exports-file).", List(out.Left)), Sweep}
	}
	return out, nil
}

// providerName is that of the provider that a way to sign in becomes, by which a client finds
// its plugin.
func providerName(way v1beta1.Access) string {
	if way.Provider != nil && way.Provider.Type != "" {
		return way.Provider.Type
	}
	return way.Name
}

// MaxListed is how many names a message has.
const MaxListed = 5

// List puts names into a message, most of them by their number where there are many.
func List(names []string) string {
	more := ""
	if len(names) > MaxListed {
		more = fmt.Sprintf(" and %d more", len(names)-MaxListed)
		names = names[:MaxListed]
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ") + more
}
