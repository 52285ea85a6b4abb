package clusterprofile

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/probe"
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
// or trust anyone, are written as empty, but for CABundle: the API server takes neither an
// empty text nor null for base64.
type endpoint struct {
	Server                string      `json:"server"`
	CABundle              []byte      `json:"certificate-authority-data,omitempty"`
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

// unpublished is why a cluster has no providers: reason and message of a condition.
type unpublished struct{ reason, message string }

// offer is what an entry would have published in a namespace.
type offer struct {
	endpoint  v1beta1.Endpoint
	providers []accessProvider
	// left are the names of providers that the namespace does not allow.
	left []string
}

// mistaken reports whether another cluster answers than an entry is for. Such an entry has
// no profile: consumers that have connected, as by multicluster-runtime, keep their client
// when a profile loses its providers or is not healthy, and drop it when the profile is gone.
func mistaken(cluster *v1beta1.Cluster) bool {
	return cluster.Status != nil && meta.IsStatusConditionFalse(cluster.Status.Conditions, v1beta1.ConditionIdentityVerified)
}

// offered returns what an entry would have published in a namespace, or why there is nothing:
// a provider for each way for controllers that the namespace allows.
func offered(cluster *v1beta1.Cluster, in Target) (offer, *unpublished) {
	none := func(reason, message string, arguments ...any) (offer, *unpublished) {
		return offer{}, &unpublished{reason, fmt.Sprintf(message, arguments...)}
	}
	if mistaken(cluster) {
		return none("IdentityMismatch", "Another cluster answers than the entry is for (IdentityVerified of the registry is False): no one is led there.")
	}
	from, ok := endpointOf(cluster)
	switch {
	case !ok || from.URL == "":
		return none("NoEndpoint", "The entry has no endpoint with a URL for any client, which is one without clientCIDRs.")
	case from.TLSServerName != "":
		return none("TLSServerNameUnsupported", "Endpoint %q has the tlsServerName %q, which clients of ClusterProfiles ignore: they would refuse the certificate. Give the endpoint a URL whose host the certificate is for, and no tlsServerName.", from.Name, from.TLSServerName)
	}
	out, names, size := offer{endpoint: from}, map[string]bool{}, 0
	for _, way := range cluster.Spec.Access {
		if way.Audience != v1beta1.AudienceController {
			continue
		}
		name, config := providerName(way), way.PluginConfig(cluster.Name)
		if names[name] {
			continue // the first one counts, as it does for those who read the registry
		}
		names[name] = true
		if !slices.Contains(in.Providers, name) {
			out.left = append(out.left, name)
			continue
		}
		size += len(from.CABundle)*4/3 + len(from.URL) + len(from.ProxyURL) + sizeOf(config)
		out.providers = append(out.providers, accessProvider{Name: name, Cluster: endpoint{
			Server: from.URL, CABundle: append([]byte(nil), from.CABundle...), ProxyURL: from.ProxyURL,
			Extensions: []extension{{Name: execExtension, Extension: config}},
		}})
	}
	switch {
	case len(names) == 0:
		return none("NoAccess", "The entry has no access with the audience Controller.")
	case len(out.providers) == 0:
		return none("ProviderNotAllowed", "None of the entry's providers may be published in this namespace: %s. If clients here have a plugin of that name, add it to providers of the namespace in spec.controllers.clusterProfiles (--cluster-profiles-providers).", list(out.left))
	case size > maxProviders:
		return none("TooLarge", "The providers would have %d bytes, and at most %d are published: shorten the caBundle of endpoint %q, or have fewer access entries.", size, maxProviders, from.Name)
	}
	return out, nil
}

// providersOf returns the providers by which clients connect to a cluster, and the condition
// that says whether there are any. Those of an endpoint that is not verified yet are not
// among them: the last ones that were stay, as they were published. An entry takes none of
// their credentials to an endpoint of before.
func providersOf(cluster *v1beta1.Cluster, in Target, known proof) ([]accessProvider, metav1.Condition) {
	publish := func(status metav1.ConditionStatus, providers []accessProvider, reason, message string, arguments ...any) ([]accessProvider, metav1.Condition) {
		return providers, metav1.Condition{Type: AccessPublished, Status: status, Reason: reason, Message: fmt.Sprintf(message, arguments...)}
	}
	none := []accessProvider{}
	of, why := offered(cluster, in)
	switch {
	case why != nil:
		return publish(metav1.ConditionFalse, none, why.reason, "%s", why.message)
	case known.refused():
		return publish(metav1.ConditionFalse, none, probe.ReasonAddressRefused, "%s No one is led there.", known.result.Message)
	case known.of(of.endpoint):
		left := ""
		if len(of.left) > 0 {
			left = " Providers that may not be published in this namespace are left out: " + list(of.left) + "."
		}
		return publish(metav1.ConditionTrue, of.providers, "Published", "Clients connect to endpoint %q.%s", of.endpoint.Name, left)
	}
	found := "it is about to be asked"
	if known.asked {
		found = strings.TrimSuffix(known.result.Message, ".")
	}
	kept := slices.DeleteFunc(slices.Clone(known.published), func(a accessProvider) bool {
		return !slices.ContainsFunc(of.providers, func(b accessProvider) bool { return a.Name == b.Name })
	})
	missing := fmt.Sprintf("endpoint %q has not shown a certificate that %s has signed: %s. It is published once it has.", of.endpoint.Name, signer(of.endpoint), found)
	if len(kept) == 0 {
		return publish(metav1.ConditionFalse, none, reasonNotVerified, "No one is led to the cluster, since %s", missing)
	}
	return publish(metav1.ConditionTrue, kept, "LastVerified", "Clients still connect to %s, since %s", kept[0].Cluster.Server, missing)
}

// signer is by whom the certificate of an endpoint has to be signed. Without a CA bundle it is
// by whom probes trust then, and clients as well.
func signer(endpoint v1beta1.Endpoint) string {
	if len(endpoint.CABundle) == 0 {
		return "a public CA (the endpoint has no caBundle)"
	}
	return "its caBundle"
}

// providerName is that of the provider that a way to sign in becomes, by which a client finds
// its plugin.
func providerName(way v1beta1.Access) string {
	if way.Provider != nil && way.Provider.Type != "" {
		return way.Provider.Type
	}
	return way.Name
}

// sizeOf is about how many bytes the configuration of a plugin has.
func sizeOf(config map[string]any) (bytes int) {
	for key, value := range config {
		bytes += len(key)
		switch value := value.(type) {
		case string:
			bytes += len(value)
		case []any:
			for _, item := range value {
				bytes += len(fmt.Sprint(item))
			}
		}
	}
	return bytes
}
