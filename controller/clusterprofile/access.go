package clusterprofile

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// execExtension is the extension of a provider that a client's exec plugin gets as
// spec.cluster.config of its ExecCredential (client.authentication.k8s.io/v1). The
// extensions of KEP-5339 by which a profile adds arguments and variables to the programs
// of a client are never published.
const execExtension = "client.authentication.k8s.io/exec"

// maxProviders is how many bytes the providers of a profile may have in all: each repeats
// the endpoint with its CA bundle, and etcd takes 1.5 MiB.
const maxProviders = 512 << 10

// accessProvider is one of status.accessProviders.
type accessProvider struct {
	Name    string   `json:"name"`
	Cluster endpoint `json:"cluster"`
}

// endpoint is a cluster as in a kubeconfig. The fields that have clients connect elsewhere,
// or trust anyone, are written as empty.
type endpoint struct {
	Server                string      `json:"server"`
	CABundle              []byte      `json:"certificate-authority-data"`
	CertificateAuthority  string      `json:"certificate-authority"`
	TLSServerName         string      `json:"tls-server-name"`
	InsecureSkipTLSVerify bool        `json:"insecure-skip-tls-verify"`
	ProxyURL              string      `json:"proxy-url"`
	Extensions            []extension `json:"extensions"`
}

type extension struct {
	Name      string         `json:"name"`
	Extension map[string]any `json:"extension"`
}

// providersOf returns the providers by which clients connect to a cluster, one for each way for
// controllers that the namespace allows, and the condition that says whether there are any.
func providersOf(cluster *v1beta1.Cluster, in Target) ([]accessProvider, metav1.Condition) {
	none := func(reason, message string) ([]accessProvider, metav1.Condition) {
		return []accessProvider{}, metav1.Condition{Type: AccessPublished, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	if cluster.Status != nil && meta.IsStatusConditionFalse(cluster.Status.Conditions, v1beta1.ConditionIdentityVerified) {
		return none("IdentityMismatch", "Another cluster answers than the entry is for (IdentityVerified of the registry is False): no one is led there.")
	}
	// Whoever reads the profile may be anywhere, and two controllers with other addresses
	// must write the same: it is the endpoint for any client.
	at := cluster.Spec.EndpointFor(netip.Addr{})
	if at < 0 {
		return none("NoEndpoint", "The entry has no endpoint with a URL for any client, which is one without clientCIDRs.")
	}
	from := cluster.Spec.Endpoints[at]
	switch {
	case from.TLSServerName != "":
		return none("TLSServerNameUnsupported", fmt.Sprintf("Endpoint %q has the tlsServerName %q, which clients of ClusterProfiles ignore: they would refuse the certificate. Give the endpoint a URL whose host the certificate is for, and no tlsServerName.", from.Name, from.TLSServerName))
	case len(from.CABundle) == 0:
		return none("NoCABundle", fmt.Sprintf("Endpoint %q has no caBundle: no address is published that clients can't verify. Give it the CA certificates, also if they are well known.", from.Name))
	}
	out, left, names, size := []accessProvider{}, []string{}, map[string]bool{}, 0
	for _, way := range cluster.Spec.Access {
		if way.Audience != v1beta1.AudienceController {
			continue
		}
		name, config, bytes := provider(cluster.Name, way)
		if names[name] {
			continue // the first one counts, as it does for those who read the registry
		}
		names[name] = true
		if !slices.Contains(in.Providers, name) {
			left = append(left, name)
			continue
		}
		size += len(from.CABundle)*4/3 + len(from.URL) + len(from.ProxyURL) + bytes
		out = append(out, accessProvider{Name: name, Cluster: endpoint{
			Server: from.URL, CABundle: from.CABundle, ProxyURL: from.ProxyURL,
			Extensions: []extension{{Name: execExtension, Extension: config}},
		}})
	}
	switch {
	case len(names) == 0:
		return none("NoAccess", "The entry has no access with the audience Controller.")
	case len(out) == 0:
		return none("ProviderNotAllowed", fmt.Sprintf("None of the entry's providers may be published in this namespace: %s. If clients here have a plugin of that name, add it to providers of the namespace in spec.controllers.clusterProfiles (--cluster-profiles-providers).", list(left)))
	case size > maxProviders:
		return none("TooLarge", fmt.Sprintf("The providers would have %d bytes, and at most %d are published: shorten the caBundle of endpoint %q, or have fewer access entries.", size, maxProviders, from.Name))
	}
	message := fmt.Sprintf("Clients connect to endpoint %q.", from.Name)
	if len(left) > 0 {
		message += " Providers that may not be published in this namespace are left out: " + list(left) + "."
	}
	return out, metav1.Condition{Type: AccessPublished, Status: metav1.ConditionTrue, Reason: "Published", Message: message}
}

// provider returns the name of the provider that a way to sign in becomes, and what the
// client's plugin of that name is told: how to sign in, never a program to run. bytes is
// about how large that is.
func provider(cluster string, way v1beta1.Access) (name string, config map[string]any, bytes int) {
	name, config = way.Name, map[string]any{}
	add := func(key, value string) {
		if value != "" {
			config[key] = value
			bytes += len(key) + len(value)
		}
	}
	switch {
	case way.Provider != nil:
		if way.Provider.Type != "" {
			name = way.Provider.Type
		}
		for key, value := range way.Provider.Config {
			config[key] = value
			bytes += len(key) + len(value)
		}
	case way.OIDC != nil:
		add("issuerURL", way.OIDC.IssuerURL)
		add("clientID", way.OIDC.ClientID)
		if len(way.OIDC.Scopes) > 0 {
			scopes := make([]any, len(way.OIDC.Scopes))
			for i, scope := range way.OIDC.Scopes {
				scopes[i] = scope
				bytes += len(scope)
			}
			config["scopes"] = scopes
		}
	case way.ObjectRef != nil:
		add("apiVersion", way.ObjectRef.APIVersion)
		add("kind", way.ObjectRef.Kind)
		add("namespace", way.ObjectRef.Namespace)
		add("name", way.ObjectRef.Name)
	}
	if len(config) == 0 {
		add("clusterName", cluster) // what upstream's secretreader asks for
	}
	return name, config, bytes
}
