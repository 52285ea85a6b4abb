package validation

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
)

// certificate returns a certificate and its private key in PEM.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// cluster returns a valid cluster, changed.
func cluster(change func(*clusterregistry.Cluster)) *clusterregistry.Cluster {
	c := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	if change != nil {
		change(c)
	}
	return c
}

// check looks at a cluster as a client of v1alpha1 writes it. It fails unless the only fault is at want's field and its text contains
// the rest of want ("FIELD: TEXT"), or there is none when want is empty.
func check(t *testing.T, reason string, c *clusterregistry.Cluster, want string) {
	t.Helper()
	form.FillV1beta1(&c.Spec)
	faults := Cluster(c, form.V1alpha1)
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

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"east":                  "",
		strings.Repeat("a", 63): "",
		strings.Repeat("a", 64): "metadata.name: must be no more than 63",
		"East":                  "metadata.name: lowercase",
		"east.example":          "metadata.name: must not contain dots",
		"":                      "metadata.name: name or generateName is required",
	} {
		check(t, name, cluster(func(c *clusterregistry.Cluster) { c.Name = name }), want)
	}
	check(t, "a namespace", cluster(func(c *clusterregistry.Cluster) { c.Namespace = "default" }), "metadata.namespace: not allowed on this type")
}

func TestTheServersAnnotationIsRefused(t *testing.T) {
	const want = "metadata.annotations[clusterregistry.k8s.io/remainder]: the server alone keeps this annotation"
	c := cluster(func(c *clusterregistry.Cluster) {
		c.ResourceVersion, c.Annotations = "1", map[string]string{clusterregistry.RemainderAnnotation: ""}
	})
	check(t, "created with it", c, want)
	if faults := ClusterUpdate(c, cluster(func(c *clusterregistry.Cluster) { c.ResourceVersion = "1" }), form.V1alpha1); len(faults) != 1 || !strings.Contains(faults[0].Error(), "the server alone") {
		t.Errorf("updated with it: %v", faults)
	}
}

func TestServerAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"":                               "",
		"api.example.com":                "",
		"API.example.com.":               "",
		"api":                            "",
		"api.example.com:6443":           "",
		"10.0.0.1":                       "",
		"10.0.0.1:6443":                  "",
		"2001:db8::1":                    "",
		"[2001:db8::1]":                  "",
		"[2001:db8::1]:6443":             "",
		"https://api.example.com":        "",
		"https://api.example.com:6443/k": "",
		"https://[2001:db8::1]:6443":     "",
		"https://[2001:db8::1]":          "",
		"http://api.example.com":         "must be an https URL",
		"https://u:p@api.example.com":    "must not contain a user or password",
		"https://api.example.com?x=y":    "must not contain a query",
		"https://api.example.com#x":      "must not contain a fragment",
		"https://":                       "must name a host",
		"https://api.example.com:99999":  "the port is not a number from 1 to 65535",
		"https://api example.com":        "must be a URL that parses",
		"api.example.com:port":           "the port is not a number",
		"api.example.com:0":              "the port is not a number",
		"10.0.0.256":                     "neither an IP address nor a DNS name",
		"10.0.0":                         "neither an IP address nor a DNS name",
		"2001:db8::1:6443:x":             "it is not a host with a port",
		"[api.example.com]:6443":         "what is in brackets is not an IPv6 address",
		"[2001:db8::1":                   "it is not a host with a port",
		"fe80::1%eth0":                   "it is not a host with a port",
		"api_1.example.com":              "the host is not a DNS name",
		"api.example.com/path":           "the host is not a DNS name",
		"user@api.example.com":           "the host is not a DNS name",
	} {
		if want != "" {
			want = "spec.kubernetesApiEndpoints.serverEndpoints[0].serverAddress: " + want
		}
		check(t, address, cluster(func(c *clusterregistry.Cluster) {
			c.Spec.KubernetesAPIEndpoints.ServerEndpoints = []clusterregistry.ServerAddressByClientCIDR{{ServerAddress: address}}
		}), want)
	}
}

// TestWhatIsRefusedIsNotRepeated puts a credential wherever a client may put one
// by mistake: the fault, which reaches the audit log, must not have it.
func TestWhatIsRefusedIsNotRepeated(t *testing.T) {
	const secret = "hunter2"
	jwt := "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzb21lb25lIn0." + secret
	address := func(address string) clusterregistry.ClusterSpec {
		return clusterregistry.ClusterSpec{KubernetesAPIEndpoints: clusterregistry.KubernetesAPIEndpoints{ServerEndpoints: []clusterregistry.ServerAddressByClientCIDR{{ServerAddress: address}}}}
	}
	endpoint := func(e clusterregistry.Endpoint) clusterregistry.ClusterSpec {
		return clusterregistry.ClusterSpec{Endpoints: []clusterregistry.Endpoint{e}}
	}
	way := func(a clusterregistry.Access) clusterregistry.ClusterSpec {
		return clusterregistry.ClusterSpec{Access: []clusterregistry.Access{a}}
	}
	config := func(key, value string) clusterregistry.ClusterSpec {
		return clusterregistry.ClusterSpec{AuthInfo: clusterregistry.AuthInfo{Providers: []clusterregistry.AuthProviderConfig{{Config: map[string]string{key: value}}}}}
	}
	for reason, spec := range map[string]clusterregistry.ClusterSpec{
		"a URL":                       address("https://u:" + secret + "@h"),
		"a URL of another scheme":     address("ftp://u:" + secret + "@h"),
		"a URL that doesn't parse":    address("https://u:" + secret + "@h o"),
		"a user and no scheme":        address("u:" + secret + "@h"),
		"a token as user":             address("https://" + secret + "@h"),
		"a query":                     address("https://h?token=" + secret),
		"a fragment":                  address("https://h#access_token=" + secret),
		"an address that is a token":  address(jwt),
		"a range":                     endpoint(clusterregistry.Endpoint{Name: "a", ClientCIDRs: []string{jwt}}),
		"an endpoint's URL":           endpoint(clusterregistry.Endpoint{Name: "a", URL: "http://u:" + secret + "@h"}),
		"a proxy":                     endpoint(clusterregistry.Endpoint{Name: "a", ProxyURL: "http://u:" + secret + "@proxy"}),
		"a server name":               endpoint(clusterregistry.Endpoint{Name: "a", TLSServerName: "u:" + secret + "@h"}),
		"an endpoint's name":          endpoint(clusterregistry.Endpoint{Name: jwt}),
		"a CA bundle":                 endpoint(clusterregistry.Endpoint{Name: "a", CABundle: []byte(secret)}),
		"an issuer":                   way(clusterregistry.Access{Name: "a", Audience: "User", OIDC: &clusterregistry.OIDCAccess{IssuerURL: "https://u:" + secret + "@idp", ClientID: "c"}}),
		"a client":                    way(clusterregistry.Access{Name: "a", Audience: "User", OIDC: &clusterregistry.OIDCAccess{IssuerURL: "https://idp", ClientID: jwt}}),
		"an audience":                 way(clusterregistry.Access{Name: "a", Audience: clusterregistry.AccessAudience(jwt), OIDC: &clusterregistry.OIDCAccess{IssuerURL: "https://idp", ClientID: "c"}}),
		"an argument":                 way(clusterregistry.Access{Name: "a", Audience: "User", Exec: &clusterregistry.ExecAccess{APIVersion: "v1", Command: "c", Args: []string{"--token=" + secret}}}),
		"a variable":                  way(clusterregistry.Access{Name: "a", Audience: "User", Exec: &clusterregistry.ExecAccess{APIVersion: "v1", Command: "c", Env: []clusterregistry.ExecEnvVar{{Name: "TOKEN", Value: secret}}}}),
		"a way without any, named so": way(clusterregistry.Access{Name: jwt, Audience: "User"}),
		"a setting":                   config("url", "https://u:"+secret+"@idp"),
		"a setting's name":            config(jwt, "x\x00-----BEGIN PRIVATE KEY-----"),
		"an id":                       {ID: jwt},
		"a URL's path":                address("https://h/" + jwt),
		"a taint's effect":            {Taints: []clusterregistry.Taint{{Key: "a", Effect: clusterregistry.TaintEffect(jwt)}}},
	} {
		version := form.V1beta1
		if len(spec.KubernetesAPIEndpoints.ServerEndpoints) > 0 || len(spec.AuthInfo.Providers) > 0 {
			version = form.V1alpha1
			form.FillV1beta1(&spec)
		}
		faults := Cluster(cluster(func(c *clusterregistry.Cluster) { c.Spec = spec }), version)
		if len(faults) == 0 || strings.Contains(faults.ToAggregate().Error(), secret) {
			t.Errorf("%s: got %v", reason, faults)
		}
	}
	labeled := cluster(func(c *clusterregistry.Cluster) { c.Labels = map[string]string{"a": jwt + "!"} })
	if faults := Cluster(labeled, form.V1beta1); len(faults) == 0 || strings.Contains(faults.ToAggregate().Error(), secret) {
		t.Errorf("a label: got %v", faults)
	}
}

func TestClientCIDRs(t *testing.T) {
	const list = "spec.kubernetesApiEndpoints.serverEndpoints"
	for _, test := range []struct {
		reason string
		cidrs  []string
		want   string
	}{
		{reason: "any client", cidrs: []string{""}},
		{reason: "any client twice, tried in order", cidrs: []string{"", ""}},
		{reason: "both families", cidrs: []string{"10.0.0.0/8", "2001:db8::/32", "0.0.0.0/0"}},
		{reason: "host bits", cidrs: []string{"10.0.0.1/8"}},
		{reason: "an address", cidrs: []string{"10.0.0.1"}, want: list + "[0].clientCIDR: must be empty (any client) or a range in CIDR notation"},
		{reason: "nonsense", cidrs: []string{"", "all"}, want: list + "[1].clientCIDR: CIDR notation"},
		{reason: "a range twice", cidrs: []string{"10.0.0.0/8", "10.0.0.0/8"}, want: list + "[1].clientCIDR: Duplicate value"},
		{reason: "a range twice in two spellings", cidrs: []string{"2001:db8::/32", "2001:0db8:0::/32"}, want: list + "[1].clientCIDR: Duplicate value"},
		{reason: "all of both families, for any client, twice", cidrs: []string{"0.0.0.0/0", "::/0", "::/0", "0.0.0.0/0"}},
		{reason: "all of one family twice", cidrs: []string{"0.0.0.0/0", "0.0.0.0/0"}, want: list + "[1].clientCIDR: Duplicate value"},
		{reason: "IPv4 as IPv6", cidrs: []string{"::ffff:10.0.0.0/104"}, want: list + "[0].clientCIDR: must be a range of IPv4 in its own notation"},
		{reason: "sixteen, each of which is two", cidrs: slices.Repeat([]string{"0.0.0.0/0", "::/0"}, 16)},
		{reason: "too many", cidrs: make([]string, 17), want: list + ": must have at most 16 items"},
	} {
		check(t, test.reason, cluster(func(c *clusterregistry.Cluster) {
			for _, cidr := range test.cidrs {
				c.Spec.KubernetesAPIEndpoints.ServerEndpoints = append(c.Spec.KubernetesAPIEndpoints.ServerEndpoints, clusterregistry.ServerAddressByClientCIDR{ClientCIDR: cidr, ServerAddress: "api"})
			}
		}), test.want)
	}
}

func TestCABundles(t *testing.T) {
	const path = "spec.kubernetesApiEndpoints.caBundle: "
	cert, key := certificate(t)
	for _, test := range []struct {
		reason string
		bundle []byte
		want   string
	}{
		{reason: "none"},
		{reason: "one", bundle: cert},
		{reason: "two, with a remark", bundle: join(cert, []byte("\nthe old one:\n"), cert)},
		{reason: "a private key", bundle: key, want: path + "must not contain a private key"},
		{reason: "a private key behind a certificate", bundle: join(cert, key), want: path + "must not contain a private key"},
		{reason: "a broken private key", bundle: join(cert, key[:60]), want: path + "must not contain a private key"},
		{reason: "another kind of block", bundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST"}), want: path + "the 1. block is \"CERTIFICATE REQUEST\""},
		{reason: "no PEM", bundle: []byte("hello"), want: path + "and there is none"},
		{reason: "something behind", bundle: join(cert, []byte("hello")), want: path + "something else follows the 1. block"},
		{reason: "not a certificate", bundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), want: path + "the 1. does not parse"},
		{reason: "too long", bundle: bytes.Repeat(cert, 200), want: path + "65536"},
	} {
		check(t, test.reason, cluster(func(c *clusterregistry.Cluster) { c.Spec.KubernetesAPIEndpoints.CABundle = test.bundle }), test.want)
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestCredentials(t *testing.T) {
	_, key := certificate(t)
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	jwt := encode(`{"alg":"RS256"}`) + "." + encode(`{"sub":"someone"}`) + "." + encode("signature")
	for _, test := range []struct {
		key, value string
		what       string
	}{
		{key: "idp-issuer-url", value: "https://idp.example"},
		{key: "client-id", value: "kubernetes"},
		{key: "token-url", value: "https://idp.example/token"},
		{key: "password", value: ""},
		{key: "secretRef", value: "team-a/token"},
		{key: "extra", value: "a@b.example, see https://wiki.example/a@b"},
		{key: "use-token", value: "true"},
		{key: "author", value: "someone"},
		{key: "kubeconfig", value: "$HOME/.kube/config"},
		{key: "kubeconfig", value: "/etc/fleet/east.yaml"},
		{key: "authority", value: "https://idp.example"},
		{key: "access-key-id", value: "AKIA"},
		{key: "token-cache", value: "disk"},
		{key: "auth", value: "dTpw", what: "this key is for a credential"},
		{key: "secret", value: "x", what: "this key is for a credential"},
		{key: "aws_session_token", value: "x", what: "this key is for a credential"},
		{key: "user-token", value: "x", what: "this key is for a credential"},
		{key: "access_key", value: "x", what: "this key is for a credential"},
		{key: "api keys", value: "x,y", what: "this key is for a credential"},
		{key: "kubeconfig", value: "{users: [{user: {token: x}}]}", what: "this key is for a credential"},
		{key: "note", value: "apiVersion: v1\nkind: Config\nusers: []", what: "looks like a kubeconfig"},
		{key: "note", value: base64.StdEncoding.EncodeToString([]byte(`{"kind": "Config"}`)), what: "looks like a kubeconfig"},
		{key: "note", value: "curl -H 'Authorization: Bearer x'", what: "looks like an Authorization header"},
		{key: "password", value: "x", what: "this key is for a credential"},
		{key: "Client_Secret", value: "x", what: "this key is for a credential"},
		{key: "accessToken", value: "x", what: "this key is for a credential"},
		{key: "refresh-token", value: "x", what: "this key is for a credential"},
		{key: "id-token", value: "x", what: "this key is for a credential"},
		{key: "token", value: "x", what: "this key is for a credential"},
		{key: "note", value: string(key), what: "looks like a private key"},
		{key: "note", value: base64.StdEncoding.EncodeToString(key), what: "looks like a private key"},
		{key: "note", value: jwt, what: "looks like a JSON Web Token"},
		{key: "note", value: "Bearer " + jwt + " ", what: "looks like a JSON Web Token"},
		{key: "url", value: "https://user:hunter2@idp.example", what: "looks like a URL with a password"},
	} {
		want := test.what
		if want != "" {
			want = fmt.Sprintf("spec.authInfo.providers[0].config[%s]: %s", test.key, want)
		}
		check(t, test.key+"="+test.value, cluster(func(c *clusterregistry.Cluster) {
			c.Spec.AuthInfo.Providers = []clusterregistry.AuthProviderConfig{{Name: "p", Config: map[string]string{test.key: test.value}}}
		}), want)
	}
}

func TestProviders(t *testing.T) {
	named := func(names ...string) *clusterregistry.Cluster {
		return cluster(func(c *clusterregistry.Cluster) {
			for _, name := range names {
				c.Spec.AuthInfo.Providers = append(c.Spec.AuthInfo.Providers, clusterregistry.AuthProviderConfig{Name: name})
			}
		})
	}
	check(t, "no name, as v0.0.4 allowed", named("", ""), "")
	check(t, "a name twice", named("a", "b", "a"), "spec.authInfo.providers[2].name: Duplicate value")
	check(t, "too many", named(make([]string, 17)...), "spec.authInfo.providers: must have at most 16 items")
}

func TestUpdates(t *testing.T) {
	old := cluster(func(c *clusterregistry.Cluster) { c.ResourceVersion = "1" })
	changed := cluster(func(c *clusterregistry.Cluster) {
		c.ResourceVersion = "1"
		c.Spec.KubernetesAPIEndpoints.CABundle = []byte("hello")
	})
	if faults := ClusterUpdate(changed, old, form.V1alpha1); len(faults) != 1 {
		t.Errorf("a bad spec in an update: %v", faults)
	}
	if faults := ClusterStatusUpdate(changed, old); len(faults) != 0 {
		t.Errorf("the spec is none of a status update's business: %v", faults)
	}
	changed.Status = &clusterregistry.ClusterStatus{Conditions: []metav1.Condition{{Type: "Ready"}}}
	if faults := ClusterStatusUpdate(changed, old); len(faults) == 0 {
		t.Error("a condition without a status is accepted")
	}
}
