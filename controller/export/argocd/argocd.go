// Package argocd makes the Secrets by which Argo CD knows clusters, as its documentation of
// declarative setup has them. They hold no credential: Argo CD runs the program, or signs in to
// AWS, as the export says, with what its own pods have.
package argocd

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

const (
	// typeLabel is by which Argo CD finds Secrets of clusters, and skipAnnotation has it leave
	// the cluster alone.
	typeLabel      = "argocd.argoproj.io/secret-type"
	skipAnnotation = "argocd.argoproj.io/skip-reconcile"
)

// Format makes Secrets of the clusters of a registry.
type Format struct{ format.Source }

// config is that of a cluster for Argo CD.
type config struct {
	TLS   tlsConfig    `json:"tlsClientConfig"`
	Proxy string       `json:"proxyUrl,omitempty"`
	AWS   *awsConfig   `json:"awsAuthConfig,omitempty"`
	Exec  *format.Exec `json:"execProviderConfig,omitempty"`
}

type tlsConfig struct {
	Insecure   bool   `json:"insecure"`
	ServerName string `json:"serverName,omitempty"`
	CAData     []byte `json:"caData,omitempty"`
}

type awsConfig struct {
	ClusterName string `json:"clusterName"`
	RoleARN     string `json:"roleARN,omitempty"`
}

func (f Format) document() format.Document {
	return format.Document{Source: f.Source, Format: "ArgoCDSecret", Secret: true}
}

// Kind says what Secrets of Argo CD are.
func (f Format) Kind() format.Kind {
	return f.document().Kind("cluster Secrets of Argo CD", "cluster-", format.ByExec, format.ByAWS)
}

// Offered returns why Argo CD is to know nothing of a cluster.
func (f Format) Offered(cluster *v1beta1.Cluster, in format.Target) *format.Withheld {
	_, _, why := f.config(cluster, in)
	return why
}

// Want returns the Secret of a cluster, or why it is to have none.
func (f Format) Want(cluster *v1beta1.Cluster, in format.Target, known format.Known, have *unstructured.Unstructured) (format.Object, *format.Withheld) {
	out := f.document()
	of, provider, why := f.config(cluster, in)
	if why != nil {
		return out, why
	}
	endpoint, _ := format.EndpointOf(cluster)
	content, err := json.Marshal(of)
	if err != nil {
		return out, &format.Withheld{Reason: "Unreadable", Message: err.Error()}
	}
	out.Labels = in.Copied(cluster)
	out.Labels[typeLabel] = "cluster"
	out.Annotations = map[string]string{format.ProviderAnnotation: provider}
	if cluster.Status != nil && meta.IsStatusConditionFalse(cluster.Status.Conditions, v1beta1.ConditionControlPlaneHealthy) {
		out.Annotations[skipAnnotation] = "true"
	}
	out.Data = map[string]string{"name": cluster.Name, "server": endpoint.URL, "config": string(content)}
	if in.Project != "" {
		out.Data["project"] = in.Project
	}
	return out.Decide(endpoint, known, have, func(data map[string]string) (v1beta1.Endpoint, bool) {
		before, ok := leads(data)
		return before, ok && in.MayLead(provider, before.URL)
	})
}

// leads returns where a Secret leads.
func leads(data map[string]string) (v1beta1.Endpoint, bool) {
	var is config
	if json.Unmarshal([]byte(data["config"]), &is) != nil || data["server"] == "" {
		return v1beta1.Endpoint{}, false
	}
	return v1beta1.Endpoint{URL: data["server"], TLSServerName: is.TLS.ServerName, CABundle: is.TLS.CAData, ProxyURL: is.Proxy}, true
}

// config returns how Argo CD connects to a cluster and by which provider, or why it is not to.
func (f Format) config(cluster *v1beta1.Cluster, in format.Target) (config, string, *format.Withheld) {
	of, why := format.OfferOf(cluster, in)
	if why != nil {
		return config{}, "", why
	}
	way, signIn, why := in.Chosen(of)
	if why != nil {
		return config{}, "", why
	}
	out := config{TLS: tlsConfig{ServerName: of.Endpoint.TLSServerName, CAData: of.Endpoint.CABundle}, Proxy: of.Endpoint.ProxyURL}
	if signIn.AWS != nil {
		name, why := way.Named(cluster, "clusterName")
		if why != nil {
			return config{}, "", why
		}
		out.AWS = &awsConfig{ClusterName: name, RoleARN: signIn.AWS.RoleARN}
		return out, way.Provider, nil
	}
	exec, why := signIn.Exec.Filled(cluster, way)
	if why != nil {
		return config{}, "", why
	}
	out.Exec = &exec
	return out, way.Provider, nil
}

// Ours reports whether a Secret belongs to this registry.
func (f Format) Ours(have *unstructured.Unstructured) (ours bool, differs string) {
	return f.document().Ours(have)
}

// Leads reports whether a Secret leads anywhere.
func (f Format) Leads(have *unstructured.Unstructured) bool {
	return f.document().Stored(have)["server"] != ""
}
