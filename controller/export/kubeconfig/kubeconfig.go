// Package kubeconfig makes ConfigMaps with a kubeconfig of a cluster, for people and for pipelines:
// it has the program that signs in and no credential.
package kubeconfig

import (
	"maps"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

// key is that of the kubeconfig in a ConfigMap.
const key = "kubeconfig"

// New returns the format of ConfigMaps of the clusters of a registry.
func New(of format.Source) format.Format {
	return format.Documents{
		Source: of, Name: "Kubeconfig", Words: "ConfigMaps with a kubeconfig", Prefix: "kubeconfig-",
		Takes: []format.By{format.ByExec}, Keys: []string{key}, Data: data, Leads: leads,
	}.Format()
}

// data returns what clients read of a cluster.
func data(cluster *v1beta1.Cluster, by format.Choice) (map[string]string, *format.Withheld) {
	exec, why := by.SignIn.Exec.Filled(cluster, by.Way)
	if why != nil {
		return nil, why
	}
	program := &clientcmdapi.ExecConfig{APIVersion: exec.APIVersion, Command: exec.Command, Args: exec.Args, InstallHint: exec.InstallHint, InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode}
	for _, name := range slices.Sorted(maps.Keys(exec.Env)) {
		program.Env = append(program.Env, clientcmdapi.ExecEnvVar{Name: name, Value: exec.Env[name]})
	}
	at, user := by.Endpoint, by.Way.Provider
	is := clientcmdapi.NewConfig()
	is.Clusters[cluster.Name] = &clientcmdapi.Cluster{Server: at.URL, TLSServerName: at.TLSServerName, CertificateAuthorityData: at.CABundle, ProxyURL: at.ProxyURL}
	is.AuthInfos[user] = &clientcmdapi.AuthInfo{Exec: program}
	is.Contexts[cluster.Name] = &clientcmdapi.Context{Cluster: cluster.Name, AuthInfo: user}
	is.CurrentContext = cluster.Name
	text, err := clientcmd.Write(*is)
	if err != nil {
		return nil, &format.Withheld{Reason: "Unreadable", Message: err.Error()}
	}
	return map[string]string{key: string(text)}, nil
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
