package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// named returns a certificate that signs itself.
func named(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// TestRememberedProxy asks again and again on one connection: what is remembered says the same as
// the first time.
func TestRememberedProxy(t *testing.T) {
	proxy, other := named(t, "front-proxy"), named(t, "other")
	bundle := slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Raw}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Raw}))
	ca, err := dynamiccertificates.NewStaticCAContent("proxy", bundle)
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"front-proxy"}
	config := &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   ca,
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(func() []string { return allowed }),
		UsernameHeaders:     headerrequest.StaticStringSlice{"X-Remote-User"},
		UIDHeaders:          headerrequest.StaticStringSlice{"X-Remote-Uid"},
		GroupHeaders:        headerrequest.StaticStringSlice{"X-Remote-Group"},
		ExtraHeaderPrefixes: headerrequest.StaticStringSlice{"X-Remote-Extra-"},
	}
	ordinary, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{RequestHeaderConfig: config, Anonymous: anonymousReach(openPaths)}.New()
	if err != nil {
		t.Fatal(err)
	}
	remembering := map[bool]authenticator.Request{true: rememberProxy(config, ordinary, true), false: rememberProxy(config, ordinary, false)}
	for _, test := range []struct {
		reason      string
		certificate *x509.Certificate
		user        string
		allowed     []string
		in          bool
	}{
		{"the front proxy", proxy, "ann", []string{"front-proxy"}, true},
		{"one of another name", other, "ann", []string{"front-proxy"}, false},
		{"it is no longer allowed", proxy, "ann", []string{"other"}, false},
		{"the other one is", other, "ann", []string{"other"}, true},
		{"no certificate", nil, "ann", []string{"front-proxy"}, false},
		{"it names no one", proxy, "", []string{"front-proxy"}, false},
		{"a stranger", named(t, "front-proxy"), "ann", []string{"front-proxy"}, false},
	} {
		allowed = test.allowed
		for i, authorizes := range []bool{true, true, false, false} {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis", nil)
			request.TLS = &tls.ConnectionState{}
			if test.certificate != nil {
				request.TLS.PeerCertificates = []*x509.Certificate{test.certificate}
			}
			request.Header = http.Header{"X-Remote-Group": {"fleet"}, "X-Remote-Extra-Scope": {"all"}}
			if test.user != "" {
				request.Header.Set("X-Remote-User", test.user)
			}
			response, ok, err := remembering[authorizes].AuthenticateRequest(request)
			switch {
			case ok != test.in:
				t.Errorf("%s: %+v, %t, %v", test.reason, response, ok, err)
			case ok && (response.User.GetName() != "ann" || !slices.Equal(response.User.GetGroups(), []string{"fleet", user.AllAuthenticated}) || response.User.GetExtra()["scope"][0] != "all" || len(request.Header) != 0):
				t.Errorf("%s: the caller is %+v, and headers are left: %v", test.reason, response.User, request.Header)
			case ok:
				// The first request of a connection is authenticated in the ordinary way.
				if _, marked := response.User.(forwarded); marked && !authorizes || !marked && authorizes && i > 0 {
					t.Errorf("%s: the host has authorized what came: %t, though the front proxy does so: %t", test.reason, marked, authorizes)
				}
			}
		}
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/version", nil)
	request.TLS = &tls.ConnectionState{}
	response, ok, err := remembering[true].AuthenticateRequest(request)
	if err != nil || !ok {
		t.Fatalf("a caller of no name: %t, %v", ok, err)
	}
	if _, marked := response.User.(forwarded); marked {
		t.Error("the host has not authorized what others say")
	}
}
