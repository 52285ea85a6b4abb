// Package kubeconfig makes ConfigMaps with a kubeconfig of a cluster, for people and for pipelines:
// it has the program that signs in and no credential.
package kubeconfig

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

// key is that of the kubeconfig in a ConfigMap.
const key = "kubeconfig"

// Format makes ConfigMaps of the clusters of a registry.
type Format struct{ format.Source }

func (f Format) document() format.Document {
	return format.Document{Source: f.Source, Format: "Kubeconfig"}
}

// Kind says what these ConfigMaps are.
func (f Format) Kind() format.Kind {
	return f.document().Kind("ConfigMaps with a kubeconfig", "kubeconfig-", format.ByExec)
}

// Offered returns why a cluster is to have no kubeconfig.
func (f Format) Offered(cluster *v1beta1.Cluster, in format.Target) *format.Withheld {
	_, _, why := config(cluster, in)
	return why
}

// Want returns the ConfigMap of a cluster, or why it is to have none.
func (f Format) Want(cluster *v1beta1.Cluster, in format.Target, known format.Known, have *unstructured.Unstructured) (format.Object, *format.Withheld) {
	out := f.document()
	content, provider, why := config(cluster, in)
	if why != nil {
		return out, why
	}
	endpoint, _ := format.EndpointOf(cluster)
	text, err := clientcmd.Write(content)
	if err != nil {
		return out, &format.Withheld{Reason: "Unreadable", Message: err.Error()}
	}
	out.Labels, out.Data = in.Copied(cluster), map[string]string{key: string(text)}
	out.Annotations = map[string]string{format.ProviderAnnotation: provider}
	return out.Decide(endpoint, known, have, func(data map[string]string) (v1beta1.Endpoint, bool) {
		before, ok := leads(data)
		return before, ok && in.MayLead(provider, before.URL)
	})
}

// leads returns where a ConfigMap leads.
func leads(data map[string]string) (v1beta1.Endpoint, bool) {
	is, err := clientcmd.Load([]byte(data[key]))
	if err != nil || len(is.Clusters) != 1 {
		return v1beta1.Endpoint{}, false
	}
	for _, at := range is.Clusters {
		return v1beta1.Endpoint{URL: at.Server, TLSServerName: at.TLSServerName, CABundle: at.CertificateAuthorityData, ProxyURL: at.ProxyURL}, at.Server != ""
	}
	return v1beta1.Endpoint{}, false
}

// config returns the kubeconfig of a cluster and its provider, or why there is to be none.
func config(cluster *v1beta1.Cluster, in format.Target) (clientcmdapi.Config, string, *format.Withheld) {
	of, why := format.OfferOf(cluster, in)
	if why != nil {
		return clientcmdapi.Config{}, "", why
	}
	way, signIn, why := in.Chosen(of)
	if why != nil {
		return clientcmdapi.Config{}, "", why
	}
	exec, why := signIn.Exec.Filled(cluster, way)
	if why != nil {
		return clientcmdapi.Config{}, "", why
	}
	program := &clientcmdapi.ExecConfig{APIVersion: exec.APIVersion, Command: exec.Command, Args: exec.Args, InstallHint: exec.InstallHint, InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode}
	for _, name := range slices.Sorted(maps.Keys(exec.Env)) {
		program.Env = append(program.Env, clientcmdapi.ExecEnvVar{Name: name, Value: exec.Env[name]})
	}
	out := clientcmdapi.NewConfig()
	out.Clusters[cluster.Name] = &clientcmdapi.Cluster{Server: of.Endpoint.URL, TLSServerName: of.Endpoint.TLSServerName, CertificateAuthorityData: of.Endpoint.CABundle, ProxyURL: of.Endpoint.ProxyURL}
	out.AuthInfos[way.Provider] = &clientcmdapi.AuthInfo{Exec: program}
	out.Contexts[cluster.Name] = &clientcmdapi.Context{Cluster: cluster.Name, AuthInfo: way.Provider}
	out.CurrentContext = cluster.Name
	return *out, way.Provider, nil
}

// Ours reports whether a ConfigMap belongs to this registry.
func (f Format) Ours(have *unstructured.Unstructured) (ours bool, differs string) {
	return f.document().Ours(have)
}

// Leads reports whether a ConfigMap leads anywhere.
func (f Format) Leads(have *unstructured.Unstructured) bool {
	return f.document().Stored(have)[key] != ""
}
