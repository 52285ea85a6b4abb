package diagnose

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// authority signs certificates of servers.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	key, der := sign(t, template, authority{})
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key}
}

// sign makes a key and its certificate; without an authority it signs itself.
func sign(t *testing.T, template *x509.Certificate, by authority) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := by.certificate, by.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

func (a authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// serve runs a server with a certificate for an address, and returns its URL.
func (a authority) serve(t *testing.T, address string, until time.Time, code int) string {
	t.Helper()
	key, der := sign(t, &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: until, IPAddresses: []net.IP{net.ParseIP(address)}}, a)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "" {
			t.Errorf("it asks for %s with %v", r.URL, r.Header)
		}
		w.Header().Set("Location", "https://elsewhere.invalid/")
		w.WriteHeader(code)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// TestEndpoint asks real servers.
func TestEndpoint(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	tomorrow := time.Now().Add(24 * time.Hour)
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "https://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ reason, url, ca, want string }{
		{"it answers", ca.serve(t, "127.0.0.1", tomorrow, 200), ca.pem(), ""},
		{"it wants credentials, and so it answers", ca.serve(t, "127.0.0.1", tomorrow, 401), ca.pem(), ""},
		{"a redirect is not followed", ca.serve(t, "127.0.0.1", tomorrow, 302), ca.pem(), ""},
		{"it is not ready", ca.serve(t, "127.0.0.1", tomorrow, 503), ca.pem(), "it answers 503 Service Unavailable to /readyz"},
		{"another CA", ca.serve(t, "127.0.0.1", tomorrow, 200), other.pem(), "its certificate is not signed by the CA in status.endpoint.caBundle"},
		{"an expired certificate", ca.serve(t, "127.0.0.1", time.Now().Add(-time.Hour), 200), ca.pem(), "its certificate has expired or is not valid yet"},
		{"a certificate for another name", ca.serve(t, "192.0.2.1", tomorrow, 200), ca.pem(), "its certificate is for other names"},
		{"no server", gone, ca.pem(), "connection refused"},
		{"a name that is not there", "https://registry.invalid:6443", ca.pem(), "registry.invalid"},
		{"a CA that is none", gone, "none", "status.endpoint.caBundle has no certificate in PEM"},
		{"no URL", "https://[", ca.pem(), "it is not a valid URL"},
	} {
		env := newEnv(t, "apiVersion: operator.clusterregistry.io/v1alpha1\nkind: ClusterRegistry\nmetadata: {name: fleet, namespace: registries}\nspec: {version: v0.4.0, mode: Independent}\n"+
			"status: {version: v0.4.0, conditions: ["+served+`], endpoint: {url: "`+test.url+`", caBundle: `+base64.StdEncoding.EncodeToString([]byte(test.ca))+"}}\n")
		got := findings(t, test.reason, env)
		want := "error registry registries/fleet: from this computer, " + test.url + " is not reached: "
		if test.want == "" && got != "" || test.want != "" && (!strings.HasPrefix(got, want) || !strings.Contains(got, test.want)) || strings.Contains(got, "\n") {
			t.Errorf("%s: it finds\n%s", test.reason, got)
		}
	}
}
