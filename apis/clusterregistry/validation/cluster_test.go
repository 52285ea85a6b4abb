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
		"https://api.example.com:99999":  "the port \"99999\" is not a number from 1 to 65535",
		"https://api example.com":        "must be a URL that parses",
		"api.example.com:port":           "the port \"port\"",
		"api.example.com:0":              "the port \"0\"",
		"10.0.0.256":                     "\"10.0.0.256\" is no IP address",
		"10.0.0":                         "\"10.0.0\" is no IP address",
		"2001:db8::1:6443:x":             "it is no host with a port",
		"[api.example.com]:6443":         "\"api.example.com\" is no IPv6 address",
		"[2001:db8::1":                   "it is no host with a port",
		"fe80::1%eth0":                   "it is no host with a port",
		"api_1.example.com":              "\"api_1.example.com\" is no DNS name",
		"api.example.com/path":           "is no DNS name",
		"user@api.example.com":           "is no DNS name",
	} {
		if want != "" {
			want = "spec.kubernetesApiEndpoints.serverEndpoints[0].serverAddress: " + want
		}
		check(t, address, cluster(func(c *clusterregistry.Cluster) {
			c.Spec.KubernetesAPIEndpoints.ServerEndpoints = []clusterregistry.ServerAddressByClientCIDR{{ServerAddress: address}}
		}), want)
	}
}

func TestCredentialsInAnAddressAreNotRepeated(t *testing.T) {
	// The value of an invalid field is part of the message by convention;
	// what matters is that nobody but the sender sees it. A URL that doesn't
	// parse must not be repeated by the parser's error on top.
	faults := Cluster(cluster(func(c *clusterregistry.Cluster) {
		c.Spec.AuthInfo.Providers = []clusterregistry.AuthProviderConfig{{Config: map[string]string{"url": "https://user:hunter2@idp.example"}}}
	}), form.V1alpha1)
	if len(faults) != 1 || strings.Contains(faults.ToAggregate().Error(), "hunter2") {
		t.Errorf("got %v", faults)
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
