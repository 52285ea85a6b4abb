package validation

import (
	"bytes"
	"cmp"
	"encoding/base64"
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
		{reason: "a program that never asks", spec: exec(clusterregistry.ExecAccess{InteractiveMode: clusterregistry.InteractiveNever})},
		{reason: "a program that always asks", spec: exec(clusterregistry.ExecAccess{InteractiveMode: clusterregistry.InteractiveAlways})},
		{reason: "a mode that is none", spec: exec(clusterregistry.ExecAccess{InteractiveMode: "never"}), want: `spec.access[0].exec.interactiveMode: Unsupported value: "never"`},
		{reason: "a key in base64 as a flag's value", spec: exec(clusterregistry.ExecAccess{Args: []string{"--tls=" + base64.StdEncoding.EncodeToString([]byte("-----BEGIN EC PRIVATE KEY-----\nx\n-----END EC PRIVATE KEY-----\n"))}}), want: "spec.access[0].exec.args[0]: looks like a credential"},
		{reason: "a token as a flag's value", spec: exec(clusterregistry.ExecAccess{Args: []string{"--token=x"}}), want: "spec.access[0].exec.args[0]: looks like a credential"},
		{reason: "a token after its flag", spec: exec(clusterregistry.ExecAccess{Args: []string{"--token", "x"}}), want: "spec.access[0].exec.args[1]: looks like a credential"},
		{reason: "a header", spec: exec(clusterregistry.ExecAccess{Args: []string{"-H", "Authorization: Bearer x"}}), want: "spec.access[0].exec.args[1]: looks like a credential"},
		{reason: "a header in a flag", spec: exec(clusterregistry.ExecAccess{Args: []string{"--header=X-Vault-Token: x"}}), want: "spec.access[0].exec.args[0]: looks like a credential"},
		{reason: "a secret after its flag", spec: exec(clusterregistry.ExecAccess{Args: []string{"--client-secret", "x"}}), want: "spec.access[0].exec.args[1]: looks like a credential"},
		{reason: "what real programs take", spec: exec(clusterregistry.ExecAccess{Args: []string{
			"eks", "get-token", "--cluster-name", "east", "--oidc-use-access-token", "--output=json", "--oidc-use-pkce=true", "--token-cache-dir", "~/.cache", "--oidc-use-access-token=true", "note: see the wiki"},
			Env: []clusterregistry.ExecEnvVar{{Name: "AWS_ACCESS_KEY_ID", Value: "AKIA"}, {Name: "KUBECONFIG", Value: "~/.kube/config"}, {Name: "GOOGLE_APPLICATION_CREDENTIALS", Value: "/var/key.json"}, {Name: "AWS_WEB_IDENTITY_TOKEN_FILE", Value: "/var/run/token"}}})},
		{reason: "a secret of the environment under another name", spec: exec(clusterregistry.ExecAccess{Env: []clusterregistry.ExecEnvVar{{Name: "DOCKER_AUTH", Value: "x"}}}), want: "spec.access[0].exec.env[0].value: looks like a credential"},
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
		{reason: "the manager removed", old: clusterregistry.ClusterSpec{Manager: set.Manager}},
		{reason: "another manager", old: clusterregistry.ClusterSpec{Manager: set.Manager}, now: clusterregistry.ClusterSpec{Manager: &clusterregistry.Manager{Name: "other"}}},
		{
			reason: "another source", old: clusterregistry.ClusterSpec{SourceRef: set.SourceRef},
			now: clusterregistry.ClusterSpec{SourceRef: &clusterregistry.SourceReference{Kind: "Cluster", Name: "west"}},
		},
		{reason: "the source removed", old: clusterregistry.ClusterSpec{SourceRef: set.SourceRef}, want: "spec.sourceRef: Invalid value: \"\": may be changed, and not removed"},
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

// TestLimits writes one byte or item more than each limit allows, and exactly as
// many.
func TestLimits(t *testing.T) {
	text := func(n int) string { return strings.Repeat("a", n) }
	way := func(a clusterregistry.Access) clusterregistry.ClusterSpec {
		if a.Name == "" {
			a.Name = "a"
		}
		a.Audience = clusterregistry.AudienceUser
		return clusterregistry.ClusterSpec{Access: []clusterregistry.Access{a}}
	}
	exec := func(e clusterregistry.ExecAccess) clusterregistry.ClusterSpec {
		e.APIVersion, e.Command = cmp.Or(e.APIVersion, "v1"), cmp.Or(e.Command, "c")
		return way(clusterregistry.Access{Exec: &e})
	}
	oidc := func(o clusterregistry.OIDCAccess) clusterregistry.ClusterSpec {
		o.IssuerURL, o.ClientID = cmp.Or(o.IssuerURL, "https://idp"), cmp.Or(o.ClientID, "c")
		return way(clusterregistry.Access{OIDC: &o})
	}
	ref := &clusterregistry.ObjectReference{Kind: "Secret", Name: "x"}
	variables := func(n int) []clusterregistry.ExecEnvVar {
		var out []clusterregistry.ExecEnvVar
		for i := range n {
			out = append(out, clusterregistry.ExecEnvVar{Name: fmt.Sprint("v", i)})
		}
		return out
	}
	settings := func(n int) clusterregistry.ClusterSpec {
		config := map[string]string{}
		for i := range n {
			config[fmt.Sprint("k", i)] = ""
		}
		return way(clusterregistry.Access{Provider: &clusterregistry.ProviderAccess{Config: config}})
	}
	setting := func(key, value string) clusterregistry.ClusterSpec {
		return way(clusterregistry.Access{Provider: &clusterregistry.ProviderAccess{Config: map[string]string{key: value}}})
	}
	endpoint := func(e clusterregistry.Endpoint) clusterregistry.ClusterSpec {
		e.Name = "a"
		return clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{e}}
	}
	for _, test := range []struct {
		what string
		spec func(n int) clusterregistry.ClusterSpec
		most int
		want string
	}{
		{"a way's name", func(n int) clusterregistry.ClusterSpec {
			return way(clusterregistry.Access{Name: text(n), ObjectRef: ref})
		}, MaxName, "spec.access[0].name: Too long"},
		{"an exec's version", func(n int) clusterregistry.ClusterSpec {
			return exec(clusterregistry.ExecAccess{APIVersion: text(n)})
		}, MaxName, "spec.access[0].exec.apiVersion: Too long"},
		{"a command", func(n int) clusterregistry.ClusterSpec { return exec(clusterregistry.ExecAccess{Command: text(n)}) }, MaxText, "spec.access[0].exec.command: Too long"},
		{"a hint", func(n int) clusterregistry.ClusterSpec {
			return exec(clusterregistry.ExecAccess{InstallHint: text(n)})
		}, MaxText, "spec.access[0].exec.installHint: Too long"},
		{"an argument", func(n int) clusterregistry.ClusterSpec {
			return exec(clusterregistry.ExecAccess{Args: []string{text(n)}})
		}, MaxData, "spec.access[0].exec.args[0]: Too long"},
		{"arguments", func(n int) clusterregistry.ClusterSpec {
			return exec(clusterregistry.ExecAccess{Args: make([]string, n)})
		}, MaxItems, "spec.access[0].exec.args: Too many"},
		{"a variable", func(n int) clusterregistry.ClusterSpec {
			return exec(clusterregistry.ExecAccess{Env: []clusterregistry.ExecEnvVar{{Name: "a", Value: text(n)}}})
		}, MaxData, "spec.access[0].exec.env[0].value: Too long"},
		{"a variable's name", func(n int) clusterregistry.ClusterSpec {
			return exec(clusterregistry.ExecAccess{Env: []clusterregistry.ExecEnvVar{{Name: text(n)}}})
		}, MaxName, "spec.access[0].exec.env[0].name: Too long"},
		{"variables", func(n int) clusterregistry.ClusterSpec { return exec(clusterregistry.ExecAccess{Env: variables(n)}) }, MaxItems, "spec.access[0].exec.env: Too many"},
		{"an issuer", func(n int) clusterregistry.ClusterSpec {
			return oidc(clusterregistry.OIDCAccess{IssuerURL: "https://idp/" + text(n-len("https://idp/"))})
		}, MaxURL, "spec.access[0].oidc.issuerURL: Too long"},
		{"a client", func(n int) clusterregistry.ClusterSpec { return oidc(clusterregistry.OIDCAccess{ClientID: text(n)}) }, MaxText, "spec.access[0].oidc.clientID: Too long"},
		{"scopes", func(n int) clusterregistry.ClusterSpec {
			return oidc(clusterregistry.OIDCAccess{Scopes: make([]string, n)})
		}, MaxItems, "spec.access[0].oidc.scopes: Too many"},
		{"a scope", func(n int) clusterregistry.ClusterSpec {
			return oidc(clusterregistry.OIDCAccess{Scopes: []string{text(n)}})
		}, MaxName, "spec.access[0].oidc.scopes[0]: Too long"},
		{"an object", func(n int) clusterregistry.ClusterSpec {
			return way(clusterregistry.Access{ObjectRef: &clusterregistry.ObjectReference{Kind: "Secret", Name: text(n)}})
		}, MaxName, "spec.access[0].objectRef.name: Too long"},
		{"a provider's type", func(n int) clusterregistry.ClusterSpec {
			return way(clusterregistry.Access{Provider: &clusterregistry.ProviderAccess{Type: text(n)}})
		}, MaxName, "spec.access[0].provider.type: Too long"},
		{"settings", settings, MaxItems, "spec.access[0].provider.config: Too many"},
		{"a setting", func(n int) clusterregistry.ClusterSpec { return setting("a", text(n)) }, MaxData, "spec.access[0].provider.config[a]: Too long"},
		{"a setting's name", func(n int) clusterregistry.ClusterSpec { return setting(text(n), "") }, MaxName, "spec.access[0].provider.config[not repeated here]: Too long"},
		{"a URL", func(n int) clusterregistry.ClusterSpec {
			return endpoint(clusterregistry.Endpoint{URL: "https://h/" + text(n-len("https://h/"))})
		}, MaxURL, "spec.endpoints[0].url: Too long"},
		{"a proxy", func(n int) clusterregistry.ClusterSpec {
			return endpoint(clusterregistry.Endpoint{ProxyURL: "https://h/" + text(n-len("https://h/"))})
		}, MaxURL, "spec.endpoints[0].proxyURL: Too long"},
		{"a source", func(n int) clusterregistry.ClusterSpec {
			return clusterregistry.ClusterSpec{SourceRef: &clusterregistry.SourceReference{Kind: "Cluster", Name: "a", UID: text(n)}}
		}, MaxName, "spec.sourceRef.uid: Too long"},
		{"all ways", func(n int) clusterregistry.ClusterSpec {
			s := clusterregistry.ClusterSpec{}
			for i := range 8 {
				a := way(clusterregistry.Access{Name: fmt.Sprint(i), Exec: &clusterregistry.ExecAccess{APIVersion: "v", Command: "c"}}).Access[0]
				for left := n/8 - len("0vc"); left > 0; left -= MaxText {
					a.Exec.Args = append(a.Exec.Args, text(min(left, MaxText)))
				}
				s.Access = append(s.Access, a)
			}
			s.Access[0].Exec.Command += text(n % 8)
			return s
		}, MaxAccess, "spec.access: must have at most 131072 bytes"},
	} {
		expect(t, test.what, Cluster(written(test.spec(test.most)), form.V1beta1), "")
		expect(t, test.what, Cluster(written(test.spec(test.most+1)), form.V1beta1), test.want)
	}
}

// TestCAInData gives the largest CA bundle to a program and to a plugin, in base64:
// in an argument, in a variable and in a setting. Two of them are more than all ways
// may have.
func TestCAInData(t *testing.T) {
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: make([]byte, 1200)})
	bundle := base64.StdEncoding.EncodeToString(bytes.Repeat(block, MaxCABundle/len(block)))
	args := func(args ...string) []clusterregistry.Access {
		return []clusterregistry.Access{{Name: "a", Audience: clusterregistry.AudienceUser, Exec: &clusterregistry.ExecAccess{APIVersion: "v", Command: "c", Args: args}}}
	}
	settings := map[string]string{"idp-certificate-authority-data": bundle}
	for what, access := range map[string][]clusterregistry.Access{
		"an argument":  args("--ca-data", bundle),
		"a flag":       args("--ca-data=" + bundle),
		"a variable":   {{Name: "a", Audience: clusterregistry.AudienceUser, Exec: &clusterregistry.ExecAccess{APIVersion: "v", Command: "c", Env: []clusterregistry.ExecEnvVar{{Name: "CA_DATA", Value: bundle}}}}},
		"a setting":    {{Name: "a", Audience: clusterregistry.AudienceUser, Provider: &clusterregistry.ProviderAccess{Type: "oidc", Config: settings}}},
		"by v1alpha1":  nil,
		"two are many": args(bundle, bundle),
	} {
		c, version, want := written(clusterregistry.ClusterSpec{Access: access}), form.V1beta1, ""
		switch what {
		case "by v1alpha1":
			c = cluster(func(c *clusterregistry.Cluster) {
				c.Spec = clusterregistry.ClusterSpec{AuthInfo: clusterregistry.AuthInfo{Providers: []clusterregistry.AuthProviderConfig{{Name: "a", Config: settings}}}}
			})
			version = form.V1alpha1
		case "two are many":
			want = "spec.access: must have at most 131072 bytes"
		}
		expect(t, what, Cluster(c, version), want)
	}
}

// TestLimitsOfV1alpha1 does the same for what only v1alpha1 has.
func TestLimitsOfV1alpha1(t *testing.T) {
	text := func(n int) string { return strings.Repeat("a", n) }
	for _, test := range []struct {
		what string
		spec func(n int) clusterregistry.ClusterSpec
		most int
		want string
	}{
		{"an address", func(n int) clusterregistry.ClusterSpec {
			return clusterregistry.ClusterSpec{KubernetesAPIEndpoints: clusterregistry.KubernetesAPIEndpoints{
				ServerEndpoints: []clusterregistry.ServerAddressByClientCIDR{{ServerAddress: "https://h/" + text(n-len("https://h/"))}}}}
		}, MaxURL, "spec.kubernetesApiEndpoints.serverEndpoints[0].serverAddress: Too long"},
		{"a provider's name", func(n int) clusterregistry.ClusterSpec {
			return clusterregistry.ClusterSpec{AuthInfo: clusterregistry.AuthInfo{Providers: []clusterregistry.AuthProviderConfig{{Name: text(n)}}}}
		}, MaxName, "spec.authInfo.providers[0].name: Too long"},
		{"a provider's type", func(n int) clusterregistry.ClusterSpec {
			return clusterregistry.ClusterSpec{AuthInfo: clusterregistry.AuthInfo{Providers: []clusterregistry.AuthProviderConfig{{Type: clusterregistry.AuthProviderType{Name: text(n)}}}}}
		}, MaxName, "spec.authInfo.providers[0].type.name: Too long"},
	} {
		check(t, test.what, cluster(func(c *clusterregistry.Cluster) { c.Spec = test.spec(test.most) }), "")
		check(t, test.what, cluster(func(c *clusterregistry.Cluster) { c.Spec = test.spec(test.most + 1) }), test.want)
	}
}

// TestLimitsAreReachedStepByStep changes what is larger than a limit that it was
// not stored under: it may stay as it is or shrink, and not grow.
func TestLimitsAreReachedStepByStep(t *testing.T) {
	endpoints := func(n int) clusterregistry.ClusterSpec {
		s := clusterregistry.ClusterSpec{}
		for i := range n {
			s.Endpoints = append(s.Endpoints, clusterregistry.Endpoint{Name: fmt.Sprint("e", i), URL: "https://east"})
		}
		return s
	}
	cidrs := func(n int) clusterregistry.ClusterSpec {
		return clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{{Name: "a", ClientCIDRs: ranges(n)}}}
	}
	name := func(n int) clusterregistry.ClusterSpec {
		return clusterregistry.ClusterSpec{DisplayName: strings.Repeat("a", n)}
	}
	cert, _ := certificate(t)
	bundle := func(n int) clusterregistry.ClusterSpec {
		return clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{{Name: "a", CABundle: []byte(strings.Repeat(string(cert), n))}}}
	}
	twice := func(a, b int) clusterregistry.ClusterSpec {
		s := cidrs(a)
		s.Endpoints = append(s.Endpoints, clusterregistry.Endpoint{Name: "b", ClientCIDRs: ranges(200)[200-b:]})
		return s
	}
	secret := func(value string) clusterregistry.ClusterSpec {
		return clusterregistry.ClusterSpec{Access: []clusterregistry.Access{{Name: "a", Audience: "User", Provider: &clusterregistry.ProviderAccess{Config: map[string]string{"secret": value}}}}}
	}
	for _, test := range []struct {
		reason   string
		old, now clusterregistry.ClusterSpec
		version  string
		want     string
	}{
		{reason: "as many endpoints", old: endpoints(20), now: endpoints(20)},
		{reason: "fewer endpoints", old: endpoints(20), now: endpoints(19)},
		{reason: "more endpoints", old: endpoints(20), now: endpoints(21), want: "spec.endpoints: must have at most 16 items"},
		{reason: "fewer ranges", old: cidrs(100), now: cidrs(99)},
		{reason: "more ranges", old: cidrs(100), now: cidrs(101), want: "spec.endpoints[0].clientCIDRs: must have at most 64 items"},
		{reason: "fewer of the one, as many of the other", old: twice(70, 90), now: twice(69, 90)},
		{reason: "fewer of the one, more of the other", old: twice(70, 90), now: twice(66, 91), want: "spec.endpoints[1].clientCIDRs: must have at most 64 items"},
		{reason: "fewer ranges than v1alpha1 can list", old: cidrs(40), now: cidrs(39), version: form.V1alpha1},
		{reason: "more ranges than v1alpha1 can list", old: cidrs(40), now: cidrs(41), version: form.V1alpha1, want: "spec.kubernetesApiEndpoints.serverEndpoints: must have at most 16 items"},
		{reason: "a shorter name", old: name(300), now: name(299)},
		{reason: "a longer name", old: name(300), now: name(301), want: "spec.displayName: Too long"},
		{reason: "a smaller bundle", old: bundle(200), now: bundle(199)},
		{reason: "a larger bundle", old: bundle(200), now: bundle(201), want: "spec.endpoints[0].caBundle: Too long"},
		{reason: "a credential that is stored already", old: secret("x"), now: secret("x")},
		{reason: "another credential", old: secret("x"), now: secret("y"), want: "spec.access[0].provider.config[secret]: Forbidden"},
	} {
		expect(t, test.reason, ClusterUpdate(written(test.now), written(test.old), cmp.Or(test.version, form.V1beta1)), test.want)
	}
}

// TestAdmissionIsHeldToTheRulesOfV1beta1 changes through v1alpha1 a cluster that
// v1alpha1 has a fault of already, and in a field that v1alpha1 lacks, as admission can.
func TestAdmissionIsHeldToTheRulesOfV1beta1(t *testing.T) {
	old := written(clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{{Name: "a", ClientCIDRs: ranges(40)}}})
	now := old.DeepCopy()
	now.Spec.Endpoints[0].ProxyURL = "ftp://proxy"
	expect(t, "a proxy that is none", ClusterUpdate(now, old, form.V1alpha1), "spec.endpoints[0].proxyURL: must be an http, https or socks5 URL")
}

func TestStatuses(t *testing.T) {
	many := func(n int) (out []metav1.Condition) {
		for i := range n {
			out = append(out, metav1.Condition{Type: fmt.Sprint("T", i), Status: "True", Reason: "A", LastTransitionTime: metav1.Now()})
		}
		return out
	}
	long := func(n int) []metav1.Condition {
		out := many(n)
		for i := range out {
			out[i].Message = strings.Repeat("a", 32<<10)
		}
		return out
	}
	resources := func(n int) map[string]resource.Quantity {
		out := map[string]resource.Quantity{}
		for i := range n {
			out[fmt.Sprint("r", i)] = resource.MustParse("1")
		}
		return out
	}
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
		{reason: "a long reason", status: clusterregistry.ClusterStatus{Conditions: []metav1.Condition{{Type: "A", Status: "True", Reason: strings.Repeat("a", 1025), LastTransitionTime: metav1.Now()}}}, want: "status.conditions[0].reason: Too long"},
		{reason: "a long message", status: clusterregistry.ClusterStatus{Conditions: []metav1.Condition{{Type: "A", Status: "True", Reason: "A", Message: strings.Repeat("a", 32769), LastTransitionTime: metav1.Now()}}}, want: "status.conditions[0].message: Too long"},
		{reason: "many conditions", status: clusterregistry.ClusterStatus{Conditions: many(65)}, want: "status.conditions: Too many"},
		{reason: "many conditions of a reporter", status: clusterregistry.ClusterStatus{Reporters: []clusterregistry.Reporter{{Name: "a", Conditions: many(65)}}}, want: "status.reporters[0].conditions: Too many"},
		{reason: "a long version", status: clusterregistry.ClusterStatus{Version: clusterregistry.ClusterVersion{Kubernetes: strings.Repeat("a", 254)}}, want: "status.version.kubernetes: Too long"},
		{reason: "many resources", status: clusterregistry.ClusterStatus{Capacity: resources(65)}, want: "status.capacity: Too many"},
		{reason: "too much of all", status: clusterregistry.ClusterStatus{Conditions: long(9)}, want: "status: must have at most 262144 bytes"},
		{reason: "a time before the first", status: clusterregistry.ClusterStatus{ObservedGeneration: -1}, want: "status.observedGeneration: must not be negative"},
	} {
		old := written(clusterregistry.ClusterSpec{})
		now := old.DeepCopy()
		now.Status = &test.status
		expect(t, test.reason, ClusterStatusUpdate(now, old), test.want)
	}
}
