package clusterprofile

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
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

// offered returns what an entry would have published in a namespace, or why there is nothing:
// a provider for each way for controllers that the namespace allows.
func offered(cluster *v1beta1.Cluster, in format.Target) ([]accessProvider, format.Offer, *format.Withheld) {
	of, why := format.OfferOf(cluster, in)
	from := of.Endpoint
	if from.TLSServerName != "" {
		return nil, of, &format.Withheld{Reason: "TLSServerNameUnsupported", Message: fmt.Sprintf("Endpoint %q has the tlsServerName %q, which clients of ClusterProfiles ignore: they would refuse the certificate. Give the endpoint a URL whose host the certificate is for, and no tlsServerName.", from.Name, from.TLSServerName)}
	}
	if why != nil {
		return nil, of, why
	}
	var providers []accessProvider
	size := 0
	for _, way := range of.Ways {
		config := way.PluginConfig(cluster.Name)
		size += len(from.CABundle)*4/3 + len(from.URL) + len(from.ProxyURL) + sizeOf(config)
		providers = append(providers, accessProvider{Name: way.Provider, Cluster: endpoint{
			Server: from.URL, CABundle: append([]byte(nil), from.CABundle...), ProxyURL: from.ProxyURL,
			Extensions: []extension{{Name: execExtension, Extension: config}},
		}})
	}
	if size > maxProviders {
		return nil, of, &format.Withheld{Reason: "TooLarge", Message: fmt.Sprintf("The providers would have %d bytes, and at most %d are published: shorten the caBundle of endpoint %q, or have fewer access entries.", size, maxProviders, from.Name)}
	}
	return providers, of, nil
}

// providersOf returns the providers by which clients connect to a cluster, and the condition
// that says whether there are any. Those of an endpoint that is not verified yet are not
// among them: the last ones that were stay, as they were published. An entry takes none of
// their credentials to an endpoint of before.
func providersOf(cluster *v1beta1.Cluster, in format.Target, known proof) ([]accessProvider, metav1.Condition) {
	publish := func(status metav1.ConditionStatus, providers []accessProvider, reason, message string, arguments ...any) ([]accessProvider, metav1.Condition) {
		return providers, metav1.Condition{Type: AccessPublished, Status: status, Reason: reason, Message: fmt.Sprintf(message, arguments...)}
	}
	none := []accessProvider{}
	providers, of, why := offered(cluster, in)
	switch {
	case why != nil:
		return publish(metav1.ConditionFalse, none, why.Reason, "%s", why.Message)
	case known.Refused():
		return publish(metav1.ConditionFalse, none, probe.ReasonAddressRefused, "%s No one is led there.", known.Result.Message)
	case known.of(of.Endpoint):
		left := ""
		if len(of.Left) > 0 {
			left = " Providers that may not be published in this namespace are left out: " + format.List(of.Left) + "."
		}
		return publish(metav1.ConditionTrue, providers, "Published", "Clients connect to endpoint %q.%s", of.Endpoint.Name, left)
	}
	kept := slices.DeleteFunc(slices.Clone(known.published), func(a accessProvider) bool {
		return !slices.ContainsFunc(providers, func(b accessProvider) bool { return a.Name == b.Name })
	})
	missing := known.Missing(of.Endpoint)
	if len(kept) == 0 {
		return publish(metav1.ConditionFalse, none, reasonNotVerified, "No one is led to the cluster, since %s", missing)
	}
	return publish(metav1.ConditionTrue, kept, "LastVerified", "Clients still connect to %s, since %s", kept[0].Cluster.Server, missing)
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
