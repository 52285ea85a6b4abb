package validation

import (
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
)

// expect fails unless the only fault is the wanted one ("FIELD: TEXT"), or there
// is none when want is empty.
func expect(t *testing.T, reason string, faults field.ErrorList, want string) {
	t.Helper()
	if want == "" {
		if len(faults) > 0 {
			t.Errorf("%s: %v", reason, faults)
		}
		return
	}
	path, text, _ := strings.Cut(want, ": ")
	if len(faults) != 1 || faults[0].Field != path || !strings.Contains(faults[0].Error(), text) {
		t.Errorf("%s: got %v, want %s", reason, faults, want)
	}
}

// written returns a cluster as a client of v1beta1 writes it.
func written(spec clusterregistry.ClusterSpec) *clusterregistry.Cluster {
	c := cluster(func(c *clusterregistry.Cluster) { c.ResourceVersion, c.Spec = "1", spec })
	form.FillV1alpha1(&c.Spec)
	return c
}

func TestSpecsOfV1beta1(t *testing.T) {
	cert, key := certificate(t)
	other, _ := certificate(t)
	many := func(n int) []clusterregistry.Endpoint {
		var out []clusterregistry.Endpoint
		for i := range n {
			out = append(out, clusterregistry.Endpoint{Name: strings.Repeat("a", i+1), URL: "https://east", CABundle: cert})
		}
		return out
	}
	endpoint := func(e clusterregistry.Endpoint) clusterregistry.ClusterSpec {
		e.Name = "main"
		return clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{e}}
	}
	way := func(a clusterregistry.Access) clusterregistry.ClusterSpec {
		a.Name, a.Audience = "people", clusterregistry.AudienceUser
		return clusterregistry.ClusterSpec{Access: []clusterregistry.Access{a}}
	}
	exec := func(e clusterregistry.ExecAccess) clusterregistry.ClusterSpec {
		e.APIVersion, e.Command = "client.authentication.k8s.io/v1", "kubelogin"
		return way(clusterregistry.Access{Exec: &e})
	}
	provider := &clusterregistry.ProviderAccess{Type: "oidc"}
	for _, test := range []struct {
		reason string
		spec   clusterregistry.ClusterSpec
		want   string
	}{
		{reason: "nothing is required"},
		{reason: "a name for people", spec: clusterregistry.ClusterSpec{DisplayName: "The east, Übersee"}},
		{reason: "a long name for people", spec: clusterregistry.ClusterSpec{DisplayName: strings.Repeat("a", 257)}, want: "spec.displayName: may not be more than 256"},
		{reason: "a UID as id", spec: clusterregistry.ClusterSpec{ID: "2d9b6c4e-4f9c-4c57-9d59-9e7a0b1c2d3e"}},
		{reason: "an id that is no DNS name", spec: clusterregistry.ClusterSpec{ID: "East"}, want: "spec.id: a lowercase RFC 1123 subdomain"},
		{reason: "a long id", spec: clusterregistry.ClusterSpec{ID: strings.Repeat("a", 128)}, want: "spec.id: may not be more than 127"},

		{reason: "sixteen endpoints with one CA", spec: clusterregistry.ClusterSpec{Endpoints: many(16)}},
		{reason: "seventeen endpoints", spec: clusterregistry.ClusterSpec{Endpoints: many(17)}, want: "spec.endpoints: must have at most 16 items"},
		{reason: "an endpoint without a name", spec: clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{{}}}, want: "spec.endpoints[0].name: Required value"},
		{reason: "an endpoint twice", spec: clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{{Name: "a"}, {Name: "a"}}}, want: "spec.endpoints[1].name: Duplicate value"},
		{reason: "a name that is no label", spec: clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{{Name: "a.b"}}}, want: "spec.endpoints[0].name: must not contain dots"},
		{reason: "http", spec: endpoint(clusterregistry.Endpoint{URL: "http://east"}), want: "spec.endpoints[0].url: must be an https URL"},
		{reason: "no URL", spec: endpoint(clusterregistry.Endpoint{URL: "east:6443"}), want: "spec.endpoints[0].url: "},
		{reason: "a password in a URL", spec: endpoint(clusterregistry.Endpoint{URL: "https://u:p@east"}), want: "spec.endpoints[0].url: must not contain a user"},
		{reason: "ranges of both families", spec: endpoint(clusterregistry.Endpoint{ClientCIDRs: []string{"10.0.0.0/8", "2001:db8::/32"}})},
		{reason: "an empty range", spec: endpoint(clusterregistry.Endpoint{ClientCIDRs: []string{""}}), want: "spec.endpoints[0].clientCIDRs[0]: no ranges at all mean any client"},
		{reason: "a range twice", spec: endpoint(clusterregistry.Endpoint{ClientCIDRs: []string{"10.0.0.0/8", "10.1.0.0/8"}}), want: "spec.endpoints[0].clientCIDRs[1]: Duplicate value"},
		{
			reason: "a range of two endpoints",
			spec:   clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{{Name: "a", ClientCIDRs: []string{"10.0.0.0/8"}}, {Name: "b", ClientCIDRs: []string{"10.0.0.0/8"}}}},
			want:   "spec.endpoints[1].clientCIDRs[0]: Duplicate value",
		},
		{reason: "too many ranges", spec: endpoint(clusterregistry.Endpoint{ClientCIDRs: ranges(65)}), want: "spec.endpoints[0].clientCIDRs: must have at most 64 items"},
		{reason: "two CAs", spec: clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{{Name: "a", CABundle: cert}, {Name: "b", CABundle: other}}}},
		{reason: "a private key", spec: endpoint(clusterregistry.Endpoint{CABundle: key}), want: "spec.endpoints[0].caBundle: must not contain a private key"},
		{reason: "too much of CAs", spec: clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{
			{Name: "a", CABundle: bytesOf(cert, 1)}, {Name: "b", CABundle: bytesOf(cert, 2)}, {Name: "c", CABundle: bytesOf(cert, 3)},
		}}, want: "spec.endpoints: must have at most 131072 bytes"},
		{reason: "a server name", spec: endpoint(clusterregistry.Endpoint{TLSServerName: "kubernetes.default.svc"})},
		{reason: "an IP address as server name", spec: endpoint(clusterregistry.Endpoint{TLSServerName: "10.0.0.1"})},
		{reason: "a server name that is none", spec: endpoint(clusterregistry.Endpoint{TLSServerName: "a b"}), want: "spec.endpoints[0].tlsServerName: "},
		{reason: "a proxy", spec: endpoint(clusterregistry.Endpoint{ProxyURL: "socks5://proxy:1080"})},
		{reason: "a proxy that is none", spec: endpoint(clusterregistry.Endpoint{ProxyURL: "ftp://proxy"}), want: "spec.endpoints[0].proxyURL: must be an http, https or socks5 URL"},
		{reason: "a proxy with a password", spec: endpoint(clusterregistry.Endpoint{ProxyURL: "http://u:p@proxy"}), want: "spec.endpoints[0].proxyURL: must not contain a user"},

		{reason: "a provider", spec: way(clusterregistry.Access{Provider: provider})},
		{reason: "no way at all", spec: way(clusterregistry.Access{}), want: "spec.access[0]: must have exactly one of"},
		{reason: "two ways in one", spec: way(clusterregistry.Access{Provider: provider, ObjectRef: &clusterregistry.ObjectReference{Kind: "Secret", Name: "x"}}), want: "spec.access[0]: must have exactly one of"},
		{reason: "nobody", spec: clusterregistry.ClusterSpec{Access: []clusterregistry.Access{{Name: "a", Audience: "Dog", Provider: provider}}}, want: "spec.access[0].audience: supported values: \"User\", \"Controller\""},
		{reason: "no name", spec: clusterregistry.ClusterSpec{Access: []clusterregistry.Access{{Audience: clusterregistry.AudienceUser, Provider: provider}}}, want: "spec.access[0].name: Required value"},
		{reason: "a password for a provider", spec: way(clusterregistry.Access{Provider: &clusterregistry.ProviderAccess{Config: map[string]string{"password": "x"}}}), want: "spec.access[0].provider.config[password]: this key is for a credential"},
		{reason: "a program", spec: exec(clusterregistry.ExecAccess{Args: []string{"get-token", "--oidc-issuer-url=https://idp", "--token-cache", "none"}, Env: []clusterregistry.ExecEnvVar{{Name: "AWS_PROFILE", Value: "x"}}})},
		{reason: "no program", spec: way(clusterregistry.Access{Exec: &clusterregistry.ExecAccess{APIVersion: "v1"}}), want: "spec.access[0].exec.command: Required value"},
		{reason: "a token as a flag's value", spec: exec(clusterregistry.ExecAccess{Args: []string{"--token=x"}}), want: "spec.access[0].exec.args[0]: looks like a credential"},
		{reason: "a token after its flag", spec: exec(clusterregistry.ExecAccess{Args: []string{"--token", "x"}}), want: "spec.access[0].exec.args[1]: looks like a credential"},
		{reason: "a private key as an argument", spec: exec(clusterregistry.ExecAccess{Args: []string{string(key)}}), want: "spec.access[0].exec.args[0]: looks like a credential"},
		{reason: "a secret in the environment", spec: exec(clusterregistry.ExecAccess{Env: []clusterregistry.ExecEnvVar{{Name: "AWS_SECRET_ACCESS_KEY", Value: "x"}}}), want: "spec.access[0].exec.env[0].value: looks like a credential"},
		{reason: "an issuer", spec: way(clusterregistry.Access{OIDC: &clusterregistry.OIDCAccess{IssuerURL: "https://idp/realm", ClientID: "kubernetes"}})},
		{reason: "an issuer without TLS", spec: way(clusterregistry.Access{OIDC: &clusterregistry.OIDCAccess{IssuerURL: "http://idp", ClientID: "kubernetes"}}), want: "spec.access[0].oidc.issuerURL: must be an https URL"},
		{reason: "an object without a name", spec: way(clusterregistry.Access{ObjectRef: &clusterregistry.ObjectReference{Kind: "Secret"}}), want: "spec.access[0].objectRef.name: Required value"},

		{reason: "two effects of a taint", spec: clusterregistry.ClusterSpec{Taints: []clusterregistry.Taint{{Key: "a", Effect: "NoSchedule"}, {Key: "a", Effect: "NoExecute"}}}},
		{reason: "a taint twice", spec: clusterregistry.ClusterSpec{Taints: []clusterregistry.Taint{{Key: "a", Value: "x", Effect: "NoSchedule"}, {Key: "a", Effect: "NoSchedule"}}}, want: "spec.taints[1]: Duplicate value"},
		{reason: "a taint of no effect", spec: clusterregistry.ClusterSpec{Taints: []clusterregistry.Taint{{Key: "a"}}}, want: "spec.taints[0].effect: supported values"},
		{reason: "a heartbeat", spec: clusterregistry.ClusterSpec{Heartbeat: &clusterregistry.Heartbeat{PeriodSeconds: 60, ToleratedMisses: 5}}},
		{reason: "a heartbeat all the time", spec: clusterregistry.ClusterSpec{Heartbeat: &clusterregistry.Heartbeat{}}, want: "spec.heartbeat.periodSeconds: must be from 1 to 86400"},
		{reason: "a manager without a name", spec: clusterregistry.ClusterSpec{Manager: &clusterregistry.Manager{}}, want: "spec.manager.name: Required value"},
		{reason: "a source without a kind", spec: clusterregistry.ClusterSpec{SourceRef: &clusterregistry.SourceReference{Name: "x"}}, want: "spec.sourceRef.kind: Required value"},
	} {
		expect(t, test.reason, Cluster(written(test.spec), form.V1beta1), test.want)
	}
}

// ranges returns n ranges of clients.
func ranges(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("2001:db8:%x::/48", i))
	}
	return out
}

// bytesOf returns a bundle that is nearly as long as one may be, unlike those of
// another n.
func bytesOf(cert []byte, n int) []byte {
	block, _ := pem.Decode(cert)
	return []byte(strings.Repeat(string(pem.EncodeToMemory(block)), (MaxCABundle-n*1000)/len(cert)))
}

func TestWhatMayBeSetOnce(t *testing.T) {
	set := clusterregistry.ClusterSpec{ID: "one", Manager: &clusterregistry.Manager{Name: "fleet"}, SourceRef: &clusterregistry.SourceReference{Kind: "Cluster", Name: "east"}}
	for _, test := range []struct {
		reason   string
		old, now clusterregistry.ClusterSpec
		want     string
	}{
		{reason: "set", now: set},
		{reason: "kept", old: set, now: set},
		{reason: "another id", old: clusterregistry.ClusterSpec{ID: "one"}, now: clusterregistry.ClusterSpec{ID: "two"}, want: "spec.id: may be set once"},
		{reason: "the id removed", old: clusterregistry.ClusterSpec{ID: "one"}, want: "spec.id: may be set once"},
		{reason: "the manager removed", old: clusterregistry.ClusterSpec{Manager: set.Manager}, want: "spec.manager: may be set once"},
		{
			reason: "another source", old: clusterregistry.ClusterSpec{SourceRef: set.SourceRef},
			now:  clusterregistry.ClusterSpec{SourceRef: &clusterregistry.SourceReference{Kind: "Cluster", Name: "west"}},
			want: "spec.sourceRef: may be set once",
		},
	} {
		expect(t, test.reason, ClusterUpdate(written(test.now), written(test.old), form.V1beta1), test.want)
	}
}

// TestWhatIsStoredDoesNoHarm changes clusters that break rules which they were
// not stored under: only what is changed is checked.
func TestWhatIsStoredDoesNoHarm(t *testing.T) {
	bad := clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{{Name: "a", URL: "http://east"}, {Name: "b"}}}
	for _, test := range []struct {
		reason string
		change func(*clusterregistry.Cluster)
		want   string
	}{
		{reason: "nothing", change: func(*clusterregistry.Cluster) {}},
		{reason: "a label", change: func(c *clusterregistry.Cluster) { c.Labels = map[string]string{"a": "b"} }},
		{reason: "another field of the spec", change: func(c *clusterregistry.Cluster) { c.Spec.DisplayName = "East" }},
		{reason: "its place in the list", change: func(c *clusterregistry.Cluster) {
			c.Spec.Endpoints[0], c.Spec.Endpoints[1] = c.Spec.Endpoints[1], c.Spec.Endpoints[0]
		}},
		{reason: "another fault", change: func(c *clusterregistry.Cluster) { c.Spec.Endpoints[1].URL = "http://west" }, want: "spec.endpoints[1].url: must be an https URL"},
		{reason: "the same fault again", change: func(c *clusterregistry.Cluster) { c.Spec.Endpoints[1].URL = "http://east" }, want: "spec.endpoints[1].url: must be an https URL"},
	} {
		now := written(*bad.DeepCopy())
		test.change(now)
		expect(t, test.reason, ClusterUpdate(now, written(bad), form.V1beta1), test.want)
	}
}

func TestStatuses(t *testing.T) {
	ready := metav1.Condition{Type: "Available", Status: "True", Reason: "Probed", LastTransitionTime: metav1.Now()}
	for _, test := range []struct {
		reason string
		status clusterregistry.ClusterStatus
		want   string
	}{
		{reason: "all of it", status: clusterregistry.ClusterStatus{
			ObservedGeneration: 1, Conditions: []metav1.Condition{ready}, Properties: []clusterregistry.Property{{Name: "region", Value: "eu"}},
			Capacity: map[string]resource.Quantity{"cpu": resource.MustParse("4")}, Nodes: &clusterregistry.NodeCount{Total: 3, Ready: 3},
			Reporters: []clusterregistry.Reporter{{Name: "agent", Conditions: []metav1.Condition{ready}}},
		}},
		{reason: "a property twice", status: clusterregistry.ClusterStatus{Properties: []clusterregistry.Property{{Name: "a"}, {Name: "a"}}}, want: "status.properties[1].name: Duplicate value"},
		{reason: "a long property", status: clusterregistry.ClusterStatus{Properties: []clusterregistry.Property{{Name: "a", Value: strings.Repeat("a", 4097)}}}, want: "status.properties[0].value: may not be more than 4096"},
		{reason: "less than nothing", status: clusterregistry.ClusterStatus{Allocatable: map[string]resource.Quantity{"cpu": resource.MustParse("-1")}}, want: "status.allocatable[cpu]: must not be negative"},
		{reason: "more ready nodes than nodes", status: clusterregistry.ClusterStatus{Nodes: &clusterregistry.NodeCount{Ready: 1}}, want: "status.nodes.ready: must be from 0"},
		{reason: "a reporter without a name", status: clusterregistry.ClusterStatus{Reporters: []clusterregistry.Reporter{{}}}, want: "status.reporters[0].name: Required value"},
		{
			reason: "a reporter's condition that is none", status: clusterregistry.ClusterStatus{Reporters: []clusterregistry.Reporter{{Name: "a", Conditions: []metav1.Condition{{Type: "A", Status: "True", LastTransitionTime: metav1.Now()}}}}},
			want: "status.reporters[0].conditions[0].reason: Required value",
		},
		{reason: "a time before the first", status: clusterregistry.ClusterStatus{ObservedGeneration: -1}, want: "status.observedGeneration: must not be negative"},
	} {
		old := written(clusterregistry.ClusterSpec{})
		now := old.DeepCopy()
		now.Status = &test.status
		expect(t, test.reason, ClusterStatusUpdate(now, old), test.want)
	}
}
