package clusterapi

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// What whoever may write a Cluster in the namespace "a" tries.

const twoTeams = `{
	"accessTemplates": [
		{"namespaces": ["b"], "hosts": ["*.example.com"], "access": [{"name": "bs", "provider": {}}]},
		{"namespaces": ["b"], "matchLabels": {"env": "prod"}, "infrastructureKinds": ["AWSManagedCluster"], "hosts": ["*.example.com"], "access": [{"name": "prod-of-b", "provider": {}}]},
		{"namespaces": ["a", "b"], "matchLabels": {"env": "gold"}, "hosts": ["*.example.com"], "access": [{"name": "gold", "provider": {}}]},
		{"namespaces": ["a"], "hosts": ["*.example.com"], "access": [{"name": "as", "provider": {}}]}],
	"clusterSets": [{"namespace": "a", "clusterSet": "set-of-a"}, {"namespace": "b", "clusterSet": "set-of-b"}]
}`

// TestTemplatesOfOtherNamespaces has a Cluster that looks like those that another namespace's
// templates are for.
func TestTemplatesOfOtherNamespaces(t *testing.T) {
	for reason, test := range map[string]struct {
		change func(*clusterv1.Cluster)
		want   string
	}{
		"its labels and kind": {func(c *clusterv1.Cluster) { aws(c); c.Labels["env"] = "prod" }, "set-of-a; as Controller map[]"},
		"its references": {func(c *clusterv1.Cluster) {
			c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "AWSManagedCluster", Name: "b"}
			c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Kind: "AWSManagedControlPlane", Name: "b"}
		}, "set-of-a; as Controller map[]"},
		"among those of its own namespace": {func(c *clusterv1.Cluster) { c.Labels["env"] = "gold" }, "set-of-a; gold Controller map[]"},
	} {
		b := filled(t, twoTeams)
		b.see(cluster("east", test.change))
		b.must("east")
		if got := brief(b.east()); got != test.want {
			t.Errorf("%s: %s, want %s", reason, got, test.want)
		}
	}
}

// TestClusterSetsByNamespace has a Cluster with labels and annotations that speak of a ClusterSet.
func TestClusterSetsByNamespace(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Grants = parsed(t, twoTeams)
		var err error
		if c.Labels, err = ParseAllowList([]string{"clusterset", "example.com/*"}); err != nil {
			t.Fatal(err)
		}
	})
	b.see(cluster("east", func(c *clusterv1.Cluster) {
		c.Labels = map[string]string{v1beta1.ClusterSetLabel: "set-of-b", "clusterset": "set-of-b", "example.com/clusterset": "set-of-b", "env": "gold"}
		c.Annotations = map[string]string{v1beta1.ClusterSetLabel: "set-of-b"}
	}))
	b.must("east")
	if got := b.east(); got.Spec.ClusterSet != "set-of-a" || got.Labels[v1beta1.ClusterSetLabel] != "" {
		t.Errorf("in the set %q, labels %v", got.Spec.ClusterSet, got.Labels)
	}
	if _, err := ParseAllowList([]string{v1beta1.ClusterSetLabel}); err == nil {
		t.Error("the label of a ClusterSet may be copied")
	}
	// Without a set of its namespace, it is in none.
	b = filled(t, `{"clusterSets": [{"namespace": "b", "clusterSet": "set-of-b"}]}`)
	b.see(cluster("east"))
	if b.must("east"); b.east().Spec.ClusterSet != "" {
		t.Errorf("in the set %q", b.east().Spec.ClusterSet)
	}
}

const within = `{"accessTemplates": [{"namespaces": ["a"], "hosts": ["*.eks.amazonaws.com", "api.example.com", "10.8.0.0/16", "fd00:8::/32"], "access": [{"name": "eks", "provider": {}}]}]}`

// TestCredentialsStayWithinHosts has addresses that look like those that a template allows.
func TestCredentialsStayWithinHosts(t *testing.T) {
	for host, allowed := range map[string]bool{
		"x.gr7.eu-west-1.eks.amazonaws.com": true, "X.EKS.amazonaws.com": true, "https://x.eks.amazonaws.com": true, "api.example.com": true, "10.8.255.1": true, "fd00:8::1": true, "[fd00:8::1]": true, "::ffff:10.8.0.1": true,
		"eks.amazonaws.com": false, "xeks.amazonaws.com": false, "x.eks.amazonaws.com.evil.example": false, "x-eks.amazonaws.com": false, "evil.example": false, "api.example.com.evil.example": false, "x.api.example.com": false,
		"10.9.0.1": false, "10.8.0.1.evil.example": false, "::ffff:10.9.0.1": false, "64:ff9b::10.8.0.1": false, "fd00:9::1": false, "0xa.8.0.1": false, "168296449": false, "10.8": false,
	} {
		b := filled(t, within)
		b.see(cluster("east", func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint.Host = host }))
		b.must("east")
		if got := len(b.east().Spec.Access) == 1; got != allowed {
			t.Errorf("%s: access %v", host, b.east().Spec.Access)
		}
		said := ""
		for _, hold := range b.held() {
			said += hold.message
		}
		if allowed != (said == "") || !allowed && !strings.Contains(said, "clusterAPI.accessTemplates[0] is not entered: its hosts do not have that of the endpoint \"cluster-api\"") {
			t.Errorf("%s: held for %q", host, said)
		}
	}
}

// TestMovedAwayFromHosts moves a cluster with access to where credentials may not go: there is no
// moment at which the entry has both. What is not this controller's stays, and so does an entry
// whose Cluster moves back.
func TestMovedAwayFromHosts(t *testing.T) {
	const eks = `{"f:spec":{"f:access":{"k:{\"name\":\"eks\"}":{".":{},"f:name":{},"f:audience":{},"f:provider":{}}}}}`
	entry := entryOf("east", "uid-east", func(e *v1beta1.Cluster) {
		e.Spec.Endpoints[0].URL = "https://10.8.0.1:6443"
		e.Spec.Access = []v1beta1.Access{{Name: "eks", Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{}}, {Name: "mine", Audience: v1beta1.AudienceUser, Provider: &v1beta1.ProviderAccess{}}}
		e.ManagedFields = []metav1.ManagedFieldsEntry{fields(Manager, "Update", "", eks)}
	})
	b := filled(t, within, entry)
	b.see(cluster("east", func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint.Host = "evil.example" }))
	b.must("east")
	if got := b.east(); got.Spec.Endpoints[0].URL != "https://evil.example:6443" || brief(got) != "; mine User map[]" {
		t.Errorf("%s at %s", brief(got), got.Spec.Endpoints[0].URL)
	}
	specs := slices.DeleteFunc(b.writes(), func(write string) bool { return write != "update " })
	if len(specs) != 1 {
		t.Errorf("in several steps: %v", b.writes())
	}
	b.see(cluster("east", func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint.Host = "10.8.0.2" }))
	b.must("east")
	if got := b.east(); got.Spec.Endpoints[0].URL != "https://10.8.0.2:6443" || brief(got) != "; mine User map[]; eks Controller map[]" || len(b.held()) > 0 {
		t.Errorf("%s at %s, held %v", brief(got), got.Spec.Endpoints[0].URL, b.held())
	}
	// Clients choose among all endpoints of an entry, whoever has added them.
	got := b.east()
	got.Spec.Endpoints = append(got.Spec.Endpoints, v1beta1.Endpoint{Name: "vpn", URL: "https://evil.example"})
	got.ManagedFields = entry.ManagedFields
	if _, err := b.registry.ClusterregistryV1beta1().Clusters().Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if b.must("east"); brief(b.east()) != "; mine User map[]" || !slices.ContainsFunc(messagesOf(b), func(m string) bool { return strings.Contains(m, `endpoint "vpn", https://evil.example`) }) {
		t.Errorf("%s, held %v", brief(b.east()), messagesOf(b))
	}
}

// TestNoAddressNoAccess has a Cluster without an address, which is still to come, and an entry
// that was adopted with an endpoint of someone else.
func TestNoAddressNoAccess(t *testing.T) {
	b := filled(t, within)
	b.see(cluster("east", func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{} }))
	if b.must("east"); len(b.east().Spec.Access) > 0 || len(b.held()) > 0 {
		t.Errorf("%s, held %v", brief(b.east()), messagesOf(b))
	}
	b = filled(t, within, &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Annotations: map[string]string{AdoptAnnotation: "uid-east"}}, Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{{Name: "own", URL: "https://evil.example"}}}})
	b.see(cluster("east", func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint.Host = "10.8.0.1" }))
	if b.must("east"); len(b.east().Spec.Endpoints) != 2 || len(b.east().Spec.Access) > 0 || len(b.held()) != 1 {
		t.Errorf("%s, held %v", brief(b.east()), messagesOf(b))
	}
}

// TestValuesOfReferences has references to what no object is named.
func TestValuesOfReferences(t *testing.T) {
	const templates = `{"accessTemplates": [{"namespaces": ["a"], "hosts": ["*.example.com"], "access": [
		{"name": "eks", "exec": {"command": "sh", "args": ["-c", "get {namespace}_{controlPlane}"], "env": [{"name": "A", "value": "{namespace}/{controlPlane}/{controlPlane}/{controlPlane}"}]}},
		{"name": "reader", "provider": {"config": {"ref": "{namespace}/{controlPlane}"}}},
		{"name": "plain", "provider": {"config": {"ref": "{namespace}/{name}"}}}]}]}`
	for value, says := range map[string]string{
		"": "the Cluster has nothing for {controlPlane}", "$(reboot)": "is not the name of an object", "x; reboot": "is not the name of an object", "--server=evil": "is not the name of an object", "a b": "is not the name of an object",
		"../../b/prod": "is not the name of an object", "{name}": "is not the name of an object", "A": "is not the name of an object", "a\nb": "is not the name of an object", strings.Repeat("a", 254): "is not the name of an object",
	} {
		b := filled(t, templates)
		b.see(cluster("east", func(c *clusterv1.Cluster) { c.Spec.ControlPlaneRef.Name = value }))
		b.must("east")
		if got := brief(b.east()); got != "; plain Controller map[ref:a/east]" {
			t.Errorf("%q: %s", value, got)
		}
		if said := messagesOf(b); len(said) != 1 || !strings.Contains(said[0], `access "eks" of clusterAPI.accessTemplates[0] is not entered: `) || !strings.Contains(said[0], `access "reader"`) || !strings.Contains(said[0], says) {
			t.Errorf("%q: held for %q", value, said)
		}
	}
	b := filled(t, templates)
	b.see(cluster("east", func(c *clusterv1.Cluster) { c.Spec.ControlPlaneRef.Name = strings.Repeat("a", 250) }))
	b.must("east")
	if got, said := brief(b.east()), messagesOf(b); strings.Contains(got, "eks") || !strings.Contains(got, "reader") || len(said) != 1 || !strings.Contains(said[0], "more than 512 bytes") {
		t.Errorf("a long name: %s, held for %q", got, said)
	}
}
