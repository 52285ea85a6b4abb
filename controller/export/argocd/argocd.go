// Package argocd makes the Secrets by which Argo CD knows clusters, as its documentation of
// declarative setup has them. They hold no credential: Argo CD runs the program, or signs in to
// AWS, as the export says, with what its own pods have.
package argocd

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

const (
	// typeLabel is by which Argo CD finds Secrets of clusters, and skipAnnotation has it leave
	// the cluster alone.
	typeLabel      = "argocd.argoproj.io/secret-type"
	skipAnnotation = "argocd.argoproj.io/skip-reconcile"
	// local is what Argo CD calls the cluster that it runs in.
	local = "in-cluster"
)

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

// New returns the format of Secrets of the clusters of a registry.
func New(of format.Source) format.Format {
	return format.Documents{
		Source: of, Name: "ArgoCDSecret", Words: "cluster Secrets of Argo CD", Prefix: "cluster-", Secret: true, Alone: true,
		Takes: []format.By{format.ByExec, format.ByAWS}, Labels: map[string]string{typeLabel: "cluster"},
		Keys: []string{"name", "server", "config"}, Data: data, Leads: leads, Notes: notes, Settings: settings,
	}.Format()
}

// data returns what Argo CD reads of a cluster.
func data(cluster *v1beta1.Cluster, by format.Choice) (map[string]string, *format.Withheld) {
	if cluster.Name == local {
		return nil, &format.Withheld{Reason: "NameReserved", Message: fmt.Sprintf("Argo CD calls the cluster that it runs in %q: what is for that one could be deployed to another. Give the entry another name.", local), Then: format.Delete}
	}
	is := config{TLS: tlsConfig{ServerName: by.Endpoint.TLSServerName, CAData: by.Endpoint.CABundle}, Proxy: by.Endpoint.ProxyURL}
	if by.SignIn.AWS != nil {
		name, why := by.Way.Named(cluster, "clusterName")
		if why != nil {
			return nil, why
		}
		is.AWS = &awsConfig{ClusterName: name, RoleARN: by.SignIn.AWS.RoleARN}
	} else {
		exec, why := by.SignIn.Exec.Filled(cluster, by.Way)
		if why != nil {
			return nil, why
		}
		is.Exec = &exec
	}
	content, err := json.Marshal(is)
	if err != nil {
		return nil, &format.Withheld{Reason: "Unreadable", Message: err.Error()}
	}
	return map[string]string{"name": cluster.Name, "server": by.Endpoint.URL, "config": string(content)}, nil
}

// leads returns where a Secret leads.
func leads(data map[string]string) (v1beta1.Endpoint, bool) {
	var is config
	if json.Unmarshal([]byte(data["config"]), &is) != nil || data["server"] == "" {
		return v1beta1.Endpoint{}, false
	}
	return v1beta1.Endpoint{URL: data["server"], TLSServerName: is.TLS.ServerName, CABundle: is.TLS.CAData, ProxyURL: is.Proxy}, true
}

// notes has Argo CD leave a cluster alone that is not healthy.
func notes(cluster *v1beta1.Cluster) map[string]string {
	if cluster.Status != nil && meta.IsStatusConditionFalse(cluster.Status.Conditions, v1beta1.ConditionControlPlaneHealthy) {
		return map[string]string{skipAnnotation: "true"}
	}
	return nil
}

// settings returns the project of the clusters.
func settings(in format.Target) map[string]string {
	if in.Project == "" {
		return nil
	}
	return map[string]string{"project": in.Project}
}
