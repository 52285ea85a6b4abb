// Package flux makes the ConfigMaps by which Flux connects to clusters without a stored
// credential: spec.kubeConfig.configMapRef of its Kustomizations and HelmReleases names one.
package flux

import (
	"fmt"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

// New returns the format of ConfigMaps of the clusters of a registry.
func New(of format.Source) format.Format {
	return format.Documents{
		Source: of, Name: "FluxConfigMap", Words: "ConfigMaps of Flux", Prefix: "flux-", Takes: []format.By{format.ByFlux},
		Keys: []string{"provider", "cluster", "address", "ca.crt", "audiences", "serviceAccountName"}, Data: data, Leads: leads,
	}.Format()
}

// data returns what Flux reads of a cluster.
func data(cluster *v1beta1.Cluster, by format.Choice) (map[string]string, *format.Withheld) {
	at, flux := by.Endpoint, by.SignIn.Flux
	if at.TLSServerName != "" || at.ProxyURL != "" {
		return nil, &format.Withheld{Reason: "EndpointUnsupported", Message: fmt.Sprintf("Endpoint %q has a tlsServerName or a proxyURL, which Flux takes from no ConfigMap. Give the endpoint a URL whose host the certificate is for, and that needs no proxy.", at.Name), Then: format.Sweep}
	}
	out := map[string]string{"provider": flux.Provider, "address": at.URL}
	if len(at.CABundle) > 0 {
		out["ca.crt"] = string(at.CABundle)
	}
	if flux.Provider != "generic" {
		name, why := by.Way.Named(cluster, "cluster")
		if why != nil {
			return nil, why
		}
		out["cluster"] = name
	}
	if len(flux.Audiences) > 0 {
		out["audiences"] = strings.Join(flux.Audiences, "\n")
	}
	if flux.ServiceAccountName != "" {
		out["serviceAccountName"] = flux.ServiceAccountName
	}
	return out, nil
}

// leads returns where a ConfigMap leads.
func leads(data map[string]string) (v1beta1.Endpoint, bool) {
	return v1beta1.Endpoint{URL: data["address"], CABundle: []byte(data["ca.crt"])}, data["address"] != ""
}
