package authn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
)

// authority signs certificates.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// sign returns what has a name and a lifetime, signed by a, or by itself if a is nil.
func (a *authority) sign(t testing.TB, name string, isCA bool, lifetime time.Duration) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		IsCA: isCA, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	parent, signer := template, key
	if a != nil {
		parent, signer = a.cert, a.key
	}
	content, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	out := &authority{t: t, key: key}
	if out.cert, err = x509.ParseCertificate(content); err != nil {
		t.Fatal(err)
	}
	return out
}

// trust returns options by which the CA is trusted.
func (a *authority) trust() x509.VerifyOptions {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

// requestWith is a request on a connection with certificates.
func requestWith(t testing.TB, certificates ...*x509.Certificate) *http.Request {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis", nil)
	request.TLS = &tls.ConnectionState{PeerCertificates: certificates}
	return request
}

// TestVerified makes sure that nothing is remembered any longer than it is true.
func TestVerified(t *testing.T) {
	ca := (*authority)(nil).sign(t, "ca", true, 24*time.Hour)
	other := (*authority)(nil).sign(t, "ca", true, 24*time.Hour)
	between := ca.sign(t, "between", true, time.Hour)
	ann, leaf := ca.sign(t, "ann", false, 2*time.Hour), between.sign(t, "leaf", false, 2*time.Hour)
	for _, test := range []struct {
		reason       string
		certificates []*x509.Certificate
		// then is what changes after the first request.
		then func(v *Verified, options *x509.VerifyOptions)
		want bool
	}{
		{"by the CA", []*x509.Certificate{ann.cert}, nil, true},
		{"by an intermediate one", []*x509.Certificate{leaf.cert, between.cert}, nil, true},
		{"an intermediate one that is missing", []*x509.Certificate{leaf.cert}, nil, false},
		{"by another CA of the same name", []*x509.Certificate{other.sign(t, "ann", false, time.Hour).cert}, nil, false},
		{"by itself", []*x509.Certificate{(*authority)(nil).sign(t, "ann", false, time.Hour).cert}, nil, false},
		{"none", nil, nil, false},
		{"another CA is in force since", []*x509.Certificate{ann.cert}, func(_ *Verified, options *x509.VerifyOptions) { *options = other.trust() }, false},
		{"it has expired since", []*x509.Certificate{ann.cert}, func(v *Verified, _ *x509.VerifyOptions) {
			v.now = func() time.Time { return time.Now().Add(3 * time.Hour) }
		}, false},
		{"the intermediate one has expired since", []*x509.Certificate{leaf.cert, between.cert}, func(v *Verified, _ *x509.VerifyOptions) {
			v.now = func() time.Time { return time.Now().Add(90 * time.Minute) }
		}, false},
	} {
		options := ca.trust()
		v := NewVerified(func() (x509.VerifyOptions, bool) { return options, true })
		request := requestWith(t, test.certificates...)
		if chains := v.Chains(request); chains != nil {
			t.Errorf("%s: the first request is not authenticated in the ordinary way", test.reason)
		}
		if test.then != nil {
			test.then(v, &options)
		}
		if got := v.Chains(request) != nil; got != test.want {
			t.Errorf("%s: remembered: %t", test.reason, got)
		}
	}
}

// TestByCertificate makes sure that a remembered certificate says the same as one that is not.
func TestByCertificate(t *testing.T) {
	ca := (*authority)(nil).sign(t, "ca", true, time.Hour)
	options := ca.trust()
	authenticator := newByCertificate(func() (x509.VerifyOptions, bool) { return options, true })
	request := requestWith(t, ca.sign(t, "ann", false, time.Hour).cert)
	for range 2 {
		response, ok, err := authenticator.AuthenticateRequest(request)
		if err != nil || !ok || response.User.GetName() != "ann" || len(response.User.GetExtra()) == 0 {
			t.Fatalf("%+v, %t, %v", response, ok, err)
		}
	}
	stranger := requestWith(t, (*authority)(nil).sign(t, "ann", false, time.Hour).cert)
	for range 2 {
		if response, ok, err := authenticator.AuthenticateRequest(stranger); ok || err == nil {
			t.Fatalf("a stranger: %+v, %v", response, err)
		}
	}
}

// BenchmarkByCertificate compares requests on one connection with those that are each verified
// anew.
func BenchmarkByCertificate(b *testing.B) {
	ca := (*authority)(nil).sign(b, "ca", true, time.Hour)
	trusted := ca.trust()
	options := func() (x509.VerifyOptions, bool) { return trusted, true }
	request := requestWith(b, ca.sign(b, "ann", false, time.Hour).cert)
	b.Run("anew", func(b *testing.B) {
		ordinary := x509request.NewDynamic(options, x509request.CommonNameUserConversion)
		for b.Loop() {
			if _, ok, _ := ordinary.AuthenticateRequest(request); !ok {
				b.Fatal("refused")
			}
		}
	})
	b.Run("remembered", func(b *testing.B) {
		remembering := newByCertificate(options)
		for b.Loop() {
			if _, ok, _ := remembering.AuthenticateRequest(request); !ok {
				b.Fatal("refused")
			}
		}
	})
}
