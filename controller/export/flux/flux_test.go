package flux

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/controller/probe"
)

// connection is what Flux makes of a ConfigMap.
type connection struct {
	provider, cluster, address, ca, account string
	audiences                               []string
}

// read reads a ConfigMap as the runtime of Flux does for spec.kubeConfig.configMapRef: the keys
// are the constants KubeConfigKey of github.com/fluxcd/pkg/apis/meta, and audiences has one on
// each line. A key that Flux does not know is a fault here.
func read(t *testing.T, data map[string]any) connection {
	t.Helper()
	var out connection
	for key, value := range data {
		text, _ := value.(string)
		switch key {
		case "provider":
			out.provider = text
		case "cluster":
			out.cluster = text
		case "address":
			out.address = text
		case "ca.crt":
			out.ca = text
		case "serviceAccountName":
			out.account = text
		case "audiences":
			for line := range strings.SplitSeq(text, "\n") {
				out.audiences = append(out.audiences, strings.TrimSpace(line))
			}
		default:
			t.Errorf("Flux knows no key %q", key)
		}
	}
	return out
}

func target(t *testing.T) format.Target {
	t.Helper()
	out := format.Target{Namespace: "flux", SignIn: []format.SignIn{
		{Provider: "eks", Hosts: []string{"*.eks.amazonaws.com"}, Flux: &format.Flux{Provider: "aws", ServiceAccountName: "fleet"}},
		{Provider: "aks", Hosts: []string{"*.azmk8s.io"}, Flux: &format.Flux{Provider: "azure"}},
		{Provider: "oidc", Hosts: []string{"*.example.com"}, Flux: &format.Flux{Provider: "generic", Audiences: []string{"a", "b"}}},
	}}
	for i := range out.SignIn {
		if err := out.SignIn[i].Complete(New(format.Source{}).Kind().SignIn); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func member(provider, url string, config map[string]string) *v1beta1.Cluster {
	return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: v1beta1.ClusterSpec{
		Endpoints: []v1beta1.Endpoint{{Name: "main", URL: url, CABundle: []byte("CA")}},
		Access:    []v1beta1.Access{{Name: provider, Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{Config: config}}},
	}}
}

// TestConfigMap expects what Flux reads of the ConfigMap of an entry.
func TestConfigMap(t *testing.T) {
	verified := format.Known{Asked: true, Verified: true}
	const arn = "arn:aws:eks:eu-west-1:111122223333:cluster/east"
	const aks = "/subscriptions/00000000-1111-2222-3333-444444444444/resourceGroups/fleet/providers/Microsoft.ContainerService/managedClusters/east"
	for _, test := range []struct {
		reason string
		entry  *v1beta1.Cluster
		want   connection
	}{
		{"a cluster of a cloud", member("eks", "https://0A1B.gr7.eu-west-1.eks.amazonaws.com", map[string]string{"cluster": arn, "serviceAccountName": "admin"}),
			connection{provider: "aws", cluster: arn, address: "https://0A1B.gr7.eu-west-1.eks.amazonaws.com", ca: "CA", account: "fleet"}},
		{"one whose ID begins with a slash", member("aks", "https://east.hcp.westeurope.azmk8s.io", map[string]string{"cluster": aks}),
			connection{provider: "azure", cluster: aks, address: "https://east.hcp.westeurope.azmk8s.io", ca: "CA"}},
		{"one that trusts the host cluster's tokens", member("oidc", "https://east.example.com", map[string]string{"audiences": "mine"}),
			connection{provider: "generic", address: "https://east.example.com", ca: "CA", audiences: []string{"a", "b"}}},
	} {
		want, why := New(format.Source{}).Want(test.entry, target(t), verified, nil)
		if why != nil {
			t.Errorf("%s: %+v", test.reason, why)
			continue
		}
		changes, err := want.Changes(&unstructured.Unstructured{Object: map[string]any{}})
		if err != nil || len(changes) != 1 {
			t.Fatalf("%s: %v, %v", test.reason, changes, err)
		}
		got := read(t, changes[0].Content["data"].(map[string]any))
		if !slices.Equal(got.audiences, test.want.audiences) {
			t.Errorf("%s: the audiences are %q", test.reason, got.audiences)
		}
		got.audiences, test.want.audiences = nil, nil
		if got.provider != test.want.provider || got.cluster != test.want.cluster || got.address != test.want.address || got.ca != test.want.ca || got.account != test.want.account {
			t.Errorf("%s: %+v, want %+v", test.reason, got, test.want)
		}
	}
}

// TestWithheld expects that Flux is led nowhere that its tokens may not go, or that it can't
// reach as the entry says.
func TestWithheld(t *testing.T) {
	verified := format.Known{Asked: true, Verified: true}
	for _, test := range []struct {
		reason string
		change func(*v1beta1.Cluster)
		known  format.Known
		want   string
	}{
		{"an address elsewhere", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://evil.net" }, verified, "HostNotAllowed"},
		{"another name on the certificate", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].TLSServerName = "api" }, verified, "EndpointUnsupported"},
		{"a proxy", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].ProxyURL = "http://proxy:3128" }, verified, "EndpointUnsupported"},
		{"never reached", func(*v1beta1.Cluster) {}, format.Known{Asked: true, Result: probe.Result{Message: "It does not answer."}}, "NotVerified"},
		{"another provider", func(c *v1beta1.Cluster) { c.Spec.Access[0].Provider.Type = "own" }, verified, "ProviderNotAllowed"},
	} {
		entry := member("oidc", "https://east.example.com", nil)
		test.change(entry)
		if _, why := New(format.Source{}).Want(entry, target(t), test.known, nil); why == nil || why.Reason != test.want {
			t.Errorf("%s: %+v", test.reason, why)
		}
	}
}

// TestWhatStays expects that the address that was verified last stays with its own CA, though the
// entry has none any more, as long as Flux's tokens may go there and no one else has written a CA.
func TestWhatStays(t *testing.T) {
	verified, silent := format.Known{Asked: true, Verified: true}, format.Known{Asked: true, Result: probe.Result{Message: "It does not answer."}}
	f, in := New(format.Source{}), target(t)
	want, why := f.Want(member("oidc", "https://east.example.com", nil), in, verified, nil)
	if why != nil {
		t.Fatal(why)
	}
	changes, err := want.Changes(&unstructured.Unstructured{Object: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	stored := &unstructured.Unstructured{Object: map[string]any{"metadata": changes[0].Metadata, "data": changes[0].Content["data"]}}
	moved := member("oidc", "https://new.example.com", nil)
	moved.Spec.Endpoints[0].CABundle = nil
	if want, why = f.Want(moved, in, silent, stored); why != nil {
		t.Fatal(why)
	}
	changes, err = want.Changes(stored)
	if err != nil || len(changes) != 1 {
		t.Fatal(changes, err)
	}
	if got := read(t, changes[0].Content["data"].(map[string]any)); got.address != "https://east.example.com" || got.ca != "CA" {
		t.Errorf("an address without its CA: %+v", got)
	}
	same := member("oidc", "https://east.example.com", nil)
	same.Spec.Endpoints[0].CABundle = []byte("another")
	if want, why = f.Want(same, in, silent, stored); why != nil {
		t.Fatal(why)
	}
	if changes, err = want.Changes(stored); err != nil || len(changes) != 1 || changes[0].Content["data"].(map[string]any)["ca.crt"] != "CA" {
		t.Errorf("a CA that was not verified: %v, %v", changes, err)
	}
	tampered := stored.DeepCopy()
	tampered.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "someone", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:ca.crt":{}}}`)}})
	if _, why = f.Want(moved, in, silent, tampered); why == nil || why.Then != format.Delete {
		t.Errorf("a CA of someone else stays: %+v", why)
	}
	in.SignIn[2].Hosts = []string{"new.example.com"}
	if err := in.SignIn[2].Complete(f.Kind().SignIn); err != nil {
		t.Fatal(err)
	}
	if _, why = f.Want(moved, in, silent, stored); why == nil || why.Then != format.Delete {
		t.Errorf("an address that is not allowed any more stays: %+v", why)
	}
}
