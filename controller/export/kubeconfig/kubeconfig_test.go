package kubeconfig

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

// TestKubeconfig expects that a client reads the kubeconfig of an entry, with the program of the
// export and no credential.
func TestKubeconfig(t *testing.T) {
	in := format.Target{Namespace: "people", SignIn: []format.SignIn{{Provider: "sso", Hosts: []string{"*.example.com"}, Exec: &format.Exec{Command: "sso", Args: []string{"--cluster={name}"}, Env: map[string]string{"REALM": "{config.realm}"}}}}}
	if err := in.SignIn[0].Complete(New(format.Source{}).Kind().SignIn); err != nil {
		t.Fatal(err)
	}
	entry := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: v1beta1.ClusterSpec{
		Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://east.example.com:6443", CABundle: []byte("CA"), TLSServerName: "api", ProxyURL: "http://proxy:3128"}},
		Access: []v1beta1.Access{
			{Name: "own", Audience: v1beta1.AudienceController, Exec: &v1beta1.ExecAccess{Command: "evil"}},
			{Name: "sso", Audience: v1beta1.AudienceController, Exec: &v1beta1.ExecAccess{Command: "evil"}, Provider: &v1beta1.ProviderAccess{Config: map[string]string{"realm": "fleet"}}},
		},
	}}
	verified := format.Known{Asked: true, Verified: true}
	want, why := New(format.Source{}).Want(entry, in, verified, nil)
	if why != nil {
		t.Fatal(why)
	}
	changes, err := want.Changes(&unstructured.Unstructured{Object: map[string]any{}})
	if err != nil || len(changes) != 1 {
		t.Fatal(changes, err)
	}
	text, _ := changes[0].Content["data"].(map[string]any)["kubeconfig"].(string)
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://east.example.com:6443" || string(config.CAData) != "CA" || config.ServerName != "api" || config.Insecure || config.Proxy == nil {
		t.Errorf("it leads to %+v", config)
	}
	e := config.ExecProvider
	if e == nil || e.Command != "sso" || strings.Join(e.Args, " ") != "--cluster=east" || len(e.Env) != 1 || e.Env[0].Value != "fleet" || strings.Contains(text, "evil") {
		t.Errorf("it runs %+v", e)
	}
	if config.BearerToken+config.Username+config.Password+string(config.KeyData) != "" {
		t.Error("it has a credential")
	}
	again, ok := leads(map[string]string{"kubeconfig": text})
	if endpoint, _ := format.EndpointOf(entry); !ok || !format.SameEndpoint(again, endpoint) {
		t.Errorf("it is read back as %+v", again)
	}
	// While another endpoint is not verified, this one stays, unless credentials may not go there.
	stored := &unstructured.Unstructured{Object: map[string]any{"metadata": changes[0].Metadata, "data": changes[0].Content["data"]}}
	silent := format.Known{Asked: true}
	entry.Spec.Endpoints[0].TLSServerName = "another"
	if want, why = New(format.Source{}).Want(entry, in, silent, stored); why != nil {
		t.Fatal(why)
	}
	if kept, ok := leads(want.(format.Document).Data); !ok || kept.TLSServerName != "api" {
		t.Errorf("it leads to %+v, which was not verified", kept)
	}
	in.SignIn[0].Hosts = []string{"new.example.com"}
	if err := in.SignIn[0].Complete(New(format.Source{}).Kind().SignIn); err != nil {
		t.Fatal(err)
	}
	entry.Spec.Endpoints[0].URL = "https://new.example.com"
	if _, why = New(format.Source{}).Want(entry, in, silent, stored); why == nil || why.Then != format.Delete {
		t.Errorf("an address that is not allowed any more stays: %+v", why)
	}
	entry.Spec.Endpoints[0].URL = "https://evil.net"
	if _, why := New(format.Source{}).Want(entry, in, verified, nil); why == nil || why.Reason != "HostNotAllowed" {
		t.Errorf("an address elsewhere: %+v", why)
	}
}
