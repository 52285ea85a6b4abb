package clusterprofile

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

func TestProfile(t *testing.T) {
	cluster := member("east", func(c *v1beta1.Cluster) {
		c.Spec.DisplayName, c.Spec.ClusterSet, c.Spec.ID = "East", "prod", "6f2a.example"
		c.Labels["example.com/zone"], c.Labels["x-k8s.io/cluster-manager"] = "z", "mine"
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "Available", Status: metav1.ConditionTrue})
	})
	p := source.of(cluster, target, verified)
	if want := map[string]string{"tier": "gold", "example.com/zone": "z", "x-k8s.io/cluster-manager": "clusterregistry.registries.hub", "registry.clusterregistry.io/hub": "registries"}; !reflect.DeepEqual(p.Labels, want) {
		t.Errorf("labels %v", p.Labels)
	}
	if p.Name != "east" || p.Spec != (spec{DisplayName: "East", ClusterManager: clusterManager{Name: "clusterregistry.registries.hub"}}) || p.Status.Version.Kubernetes != "v1.37.1" {
		t.Errorf("%+v", p)
	}
	if want := []property{{Name: "cluster.clusterset.k8s.io", Value: "6f2a.example"}, {Name: "clusterset.k8s.io", Value: "prod"}, {Name: "region", Value: "eu"}}; !reflect.DeepEqual(p.Status.Properties, want) {
		t.Errorf("properties %v", p.Status.Properties)
	}
	if !source.ours(p) || (Format{format.Source{Registry: "hub", Namespace: "elsewhere"}}).ours(p) || (Format{format.Source{Registry: "other", Namespace: "registries"}}).ours(p) {
		t.Error("whose it is")
	}
}

// TestEmptyEntry expects that a profile of an entry that says nothing is valid: no list is
// null, no condition lacks a reason or a time.
func TestEmptyEntry(t *testing.T) {
	p := source.of(&v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", CreationTimestamp: metav1.Unix(1, 0)}}, target, verified)
	content, err := json.Marshal(p.Status)
	if err != nil || strings.Contains(string(content), "null") {
		t.Errorf("%s, %v", content, err)
	}
	for _, c := range p.Status.Conditions {
		if c.Reason == "" || c.LastTransitionTime.IsZero() || c.Status == "" {
			t.Errorf("condition %+v", c)
		}
	}
	for kind, want := range map[string]metav1.ConditionStatus{"ControlPlaneHealthy": metav1.ConditionUnknown, "Joined": metav1.ConditionTrue, "AccessPublished": metav1.ConditionFalse} {
		if c := meta.FindStatusCondition(p.Status.Conditions, kind); c == nil || c.Status != want {
			t.Errorf("%s is %+v", kind, c)
		}
	}
}

func TestConditions(t *testing.T) {
	at := metav1.Unix(1000, 0)
	for _, test := range []struct {
		reason         string
		reported, want metav1.Condition
	}{
		{"as it is", metav1.Condition{Type: Joined, Status: "False", Reason: "Deleted", Message: "m", LastTransitionTime: at, ObservedGeneration: 7}, metav1.Condition{Type: Joined, Status: "False", Reason: "Deleted", Message: "m", LastTransitionTime: at}},
		{"no reason", metav1.Condition{Type: Joined, Status: "False", LastTransitionTime: at}, metav1.Condition{Type: Joined, Status: "False", Reason: "Reported", LastTransitionTime: at}},
		{"a reason that is none", metav1.Condition{Type: Joined, Status: "True", Reason: "no reason", LastTransitionTime: at}, metav1.Condition{Type: Joined, Status: "True", Reason: "Reported", LastTransitionTime: at}},
		{"a status that is none", metav1.Condition{Type: Joined, Status: "Maybe", Reason: "R", LastTransitionTime: at}, metav1.Condition{Type: Joined, Status: "Unknown", Reason: "R", LastTransitionTime: at}},
		{"a long message", metav1.Condition{Type: Joined, Status: "True", Reason: "R", Message: strings.Repeat("ä", 40000), LastTransitionTime: at}, metav1.Condition{Type: Joined, Status: "True", Reason: "R", Message: strings.Repeat("ä", 32768), LastTransitionTime: at}},
		{"no time", metav1.Condition{Type: Joined, Status: "True", Reason: "R"}, metav1.Condition{Type: Joined, Status: "True", Reason: "R", LastTransitionTime: member("x").CreationTimestamp}},
	} {
		p := source.of(member("x", func(c *v1beta1.Cluster) { c.Status.Conditions = []metav1.Condition{test.reported} }), target, verified)
		if got := meta.FindStatusCondition(p.Status.Conditions, Joined); !reflect.DeepEqual(*got, test.want) {
			t.Errorf("%s: %.200v, want %.200v", test.reason, got, test.want)
		}
	}
}

// TestManager expects a name of each registry that is its own and a value of a label, as
// KEP-4322 has it.
func TestManager(t *testing.T) {
	long := strings.Repeat("n", 63)
	seen := map[string]bool{}
	for _, s := range []format.Source{source.Source, {Registry: "hub", Namespace: "other"}, {Registry: "b", Namespace: "a-b"}, {Registry: "b-b", Namespace: "a"}, {Registry: "hub", Namespace: long}, {Registry: "hub2", Namespace: long}} {
		name := Format{s}.Manager()
		if seen[name] || len(validation.IsValidLabelValue(name)) > 0 || !strings.HasPrefix(name, "clusterregistry."+s.Namespace[:1]) {
			t.Errorf("%+v: %q", s, name)
		}
		seen[name] = true
	}
}

func TestProperties(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for _, test := range []struct {
		reason   string
		reported []v1beta1.Property
		id, set  string
		want     []property
		left     string
	}{
		{"verbatim", []v1beta1.Property{{Name: "example.com/zone", Value: "z"}, {Name: "A b", Value: " x\n"}}, "", "", []property{{"A b", " x\n"}, {"example.com/zone", "z"}}, ""},
		{"an ID that a reporter claims", []v1beta1.Property{{Name: "cluster.clusterset.k8s.io", Value: "west"}}, "", "", []property{}, ""},
		{"an ID that a reporter denies", []v1beta1.Property{{Name: "cluster.clusterset.k8s.io", Value: "west"}}, "east", "", []property{{"cluster.clusterset.k8s.io", "east"}}, ""},
		{"a set that a reporter claims", []v1beta1.Property{{Name: "clusterset.k8s.io", Value: "prod"}}, "", "", []property{}, ""},
		{"a set that a reporter denies", []v1beta1.Property{{Name: "clusterset.k8s.io", Value: "dev"}}, "", "prod", []property{{"clusterset.k8s.io", "prod"}}, ""},
		{"no room", []v1beta1.Property{{Name: "long", Value: long}, {Name: "empty"}, {Name: "wide", Value: strings.Repeat("ä", 1024)}}, "", "", []property{{"wide", strings.Repeat("ä", 1024)}}, `"empty", "long"`},
	} {
		p := source.of(member("x", func(c *v1beta1.Cluster) {
			c.Status.Properties, c.Spec.ID, c.Spec.ClusterSet = test.reported, test.id, test.set
		}), target, verified)
		if !reflect.DeepEqual(p.Status.Properties, test.want) {
			t.Errorf("%s: %v", test.reason, p.Status.Properties)
		}
		c := meta.FindStatusCondition(p.Status.Conditions, PropertiesPublished)
		if (c == nil) != (test.left == "") || c != nil && !strings.Contains(c.Message, test.left) {
			t.Errorf("%s: %+v", test.reason, c)
		}
	}
}

func TestAccess(t *testing.T) {
	controller := func(a v1beta1.Access) v1beta1.Access { a.Audience = v1beta1.AudienceController; return a }
	for _, test := range []struct {
		reason string
		change func(*v1beta1.Cluster)
		// want is the condition's reason, and providers the names with their extensions.
		want      string
		providers string
	}{
		{"a provider", func(*v1beta1.Cluster) {}, "Published", `secretreader {"clusterName":"east"}`},
		{"its type is its name", func(c *v1beta1.Cluster) { c.Spec.Access[0].Provider.Type = "" }, "Published", `tokens {"clusterName":"east"}`},
		{"no configuration", func(c *v1beta1.Cluster) { c.Spec.Access[0].Provider.Config = nil }, "Published", `secretreader {"clusterName":"east"}`},
		{"all kinds", func(c *v1beta1.Cluster) {
			c.Spec.Access = []v1beta1.Access{
				controller(v1beta1.Access{Name: "kubeconfig", Provider: &v1beta1.ProviderAccess{Type: "kubeconfig-secretreader", Config: map[string]string{"name": "n", "key": "value"}}}),
				controller(v1beta1.Access{Name: "gke", Exec: &v1beta1.ExecAccess{APIVersion: "client.authentication.k8s.io/v1", Command: "evil", Args: []string{"--evil"}, Env: []v1beta1.ExecEnvVar{{Name: "EVIL", Value: "evil"}}}}),
				controller(v1beta1.Access{Name: "sso", OIDC: &v1beta1.OIDCAccess{IssuerURL: "https://sso", ClientID: "id", Scopes: []string{"groups"}}}),
				controller(v1beta1.Access{Name: "kubefed", ObjectRef: &v1beta1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "s"}}),
				controller(v1beta1.Access{Name: "again", Provider: &v1beta1.ProviderAccess{Type: "gke", Config: map[string]string{"x": "y"}}}),
				{Name: "people", Audience: v1beta1.AudienceUser, OIDC: &v1beta1.OIDCAccess{IssuerURL: "https://sso", ClientID: "id"}},
			}
		}, "Published", `kubeconfig-secretreader {"key":"value","name":"n"} gke {"clusterName":"east"} sso {"clientID":"id","issuerURL":"https://sso","scopes":["groups"]} kubefed {"apiVersion":"v1","kind":"Secret","name":"s","namespace":"ns"}`},
		{"none for controllers", func(c *v1beta1.Cluster) { c.Spec.Access[0].Audience = v1beta1.AudienceUser }, "NoAccess", ""},
		{"tlsServerName", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].TLSServerName = "api" }, "TLSServerNameUnsupported", ""},
		{"no URL", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "" }, "NoEndpoint", ""},
		{"no endpoint", func(c *v1beta1.Cluster) { c.Spec.Endpoints = nil }, "NoEndpoint", ""},
		{"an endpoint for some", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].ClientCIDRs = []string{"10.0.0.0/8"} }, "NoEndpoint", ""},
		{"another cluster answers", func(c *v1beta1.Cluster) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "IdentityVerified", Status: metav1.ConditionFalse})
		}, "IdentityMismatch", ""},
		{"not verified", func(c *v1beta1.Cluster) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "IdentityVerified", Status: metav1.ConditionUnknown})
		}, "Published", `secretreader {"clusterName":"east"}`},
		{"large", func(c *v1beta1.Cluster) {
			c.Spec.Endpoints[0].CABundle = make([]byte, 64<<10)
			for _, name := range strings.Split("bcdefghi", "") {
				c.Spec.Access = append(c.Spec.Access, controller(v1beta1.Access{Name: name, Provider: &v1beta1.ProviderAccess{}}))
			}
		}, "TooLarge", ""},
	} {
		p := source.of(member("east", test.change), target, verified)
		var got []string
		for _, provider := range p.Status.AccessProviders {
			if provider.Cluster.Server != "https://east.example.com:6443" || string(provider.Cluster.CABundle) != "CA" || len(provider.Cluster.Extensions) != 1 || provider.Cluster.Extensions[0].Name != "client.authentication.k8s.io/exec" {
				t.Errorf("%s: %+v", test.reason, provider)
				continue
			}
			extension, err := json.Marshal(provider.Cluster.Extensions[0].Extension)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, provider.Name+" "+string(extension))
		}
		if strings.Join(got, " ") != test.providers {
			t.Errorf("%s: providers %q", test.reason, got)
		}
		c := meta.FindStatusCondition(p.Status.Conditions, AccessPublished)
		if c == nil || c.Reason != test.want || (c.Status == metav1.ConditionTrue) != (test.want == "Published") || c.Message == "" {
			t.Errorf("%s: %+v", test.reason, c)
		}
	}
}

// TestDecode expects that a profile is read back as it was written.
func TestDecode(t *testing.T) {
	want := source.of(member("east", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].ProxyURL = "http://proxy" }), target, verified)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		t.Fatal(err)
	}
	have, err := decode(&unstructured.Unstructured{Object: content})
	if err != nil || !sameMain(want, have) || !sameStatus(want.Status, have.Status) || have.Status.AccessProviders[0].Cluster.ProxyURL != "http://proxy" {
		t.Errorf("%+v, %v", have, err)
	}
	if _, err := decode(&unstructured.Unstructured{Object: map[string]any{"spec": "none"}}); err == nil {
		t.Error("what is no profile is read")
	}
}
