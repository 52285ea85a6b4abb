// Package flux makes the ConfigMaps by which Flux connects to clusters without a stored
// credential: spec.kubeConfig.configMapRef of its Kustomizations and HelmReleases names one.
package flux

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

// Format makes ConfigMaps of the clusters of a registry.
type Format struct{ format.Source }

func (f Format) document() format.Document {
	return format.Document{Source: f.Source, Format: "FluxConfigMap"}
}

// Kind says what ConfigMaps of Flux are.
func (f Format) Kind() format.Kind {
	return f.document().Kind("ConfigMaps of Flux", "flux-", format.ByFlux)
}

// Offered returns why Flux is to know nothing of a cluster.
func (f Format) Offered(cluster *v1beta1.Cluster, in format.Target) *format.Withheld {
	_, _, why := data(cluster, in)
	return why
}

// Want returns the ConfigMap of a cluster, or why it is to have none.
func (f Format) Want(cluster *v1beta1.Cluster, in format.Target, known format.Known, have *unstructured.Unstructured) (format.Object, *format.Withheld) {
	out := f.document()
	content, provider, why := data(cluster, in)
	if why != nil {
		return out, why
	}
	endpoint, _ := format.EndpointOf(cluster)
	out.Labels, out.Data = in.Copied(cluster), content
	out.Annotations = map[string]string{format.ProviderAnnotation: provider}
	return out.Decide(endpoint, known, have, func(data map[string]string) (v1beta1.Endpoint, bool) {
		address := data["address"]
		return v1beta1.Endpoint{URL: address, CABundle: []byte(data["ca.crt"])}, in.MayLead(provider, address)
	})
}

// data returns what Flux reads of a cluster and by which provider, or why it is not to.
func data(cluster *v1beta1.Cluster, in format.Target) (map[string]string, string, *format.Withheld) {
	of, why := format.OfferOf(cluster, in)
	if why != nil {
		return nil, "", why
	}
	if of.Endpoint.TLSServerName != "" || of.Endpoint.ProxyURL != "" {
		return nil, "", &format.Withheld{Reason: "EndpointUnsupported", Message: fmt.Sprintf("Endpoint %q has a tlsServerName or a proxyURL, which Flux takes from no ConfigMap. Give the endpoint a URL whose host the certificate is for, and that needs no proxy.", of.Endpoint.Name), Then: format.Sweep}
	}
	way, signIn, why := in.Chosen(of)
	if why != nil {
		return nil, "", why
	}
	out := map[string]string{"provider": signIn.Flux.Provider, "address": of.Endpoint.URL}
	if len(of.Endpoint.CABundle) > 0 {
		out["ca.crt"] = string(of.Endpoint.CABundle)
	}
	if signIn.Flux.Provider != "generic" {
		if out["cluster"], why = way.Named(cluster, "cluster"); why != nil {
			return nil, "", why
		}
	}
	if len(signIn.Flux.Audiences) > 0 {
		out["audiences"] = strings.Join(signIn.Flux.Audiences, "\n")
	}
	if signIn.Flux.ServiceAccountName != "" {
		out["serviceAccountName"] = signIn.Flux.ServiceAccountName
	}
	return out, way.Provider, nil
}

// Ours reports whether a ConfigMap belongs to this registry.
func (f Format) Ours(have *unstructured.Unstructured) (ours bool, differs string) {
	return f.document().Ours(have)
}

// Leads reports whether a ConfigMap leads anywhere.
func (f Format) Leads(have *unstructured.Unstructured) bool {
	return f.document().Stored(have)["address"] != ""
}
