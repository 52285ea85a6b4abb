package handshake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"net/http/httptest"
	"testing"
	"time"
)

// newCA returns a CA with a name.
func newCA(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, createErr := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ca, parseErr := x509.ParseCertificate(raw)
	if err := errors.Join(createErr, parseErr); err != nil {
		t.Fatal(err)
	}
	return ca
}

// TestAsk asks servers that know some CAs of clients, in each version of TLS, and whether
// they demand a certificate or not: what they show is seen even so.
func TestAsk(t *testing.T) {
	old, next := newCA(t, "ca"), newCA(t, "ca-2")
	for _, test := range []struct {
		reason       string
		knows        []*x509.Certificate
		auth         tls.ClientAuthType
		version      uint16
		both, onlyIt bool
	}{
		{"the previous CA", []*x509.Certificate{old}, tls.RequestClientCert, tls.VersionTLS13, false, false},
		{"both", []*x509.Certificate{old, next}, tls.RequestClientCert, tls.VersionTLS13, true, false},
		{"the new one alone", []*x509.Certificate{next}, tls.RequestClientCert, tls.VersionTLS13, false, true},
		{"both, and a certificate is demanded", []*x509.Certificate{old, next}, tls.RequireAndVerifyClientCert, tls.VersionTLS13, true, false},
		{"both, in TLS 1.2", []*x509.Certificate{old, next}, tls.RequestClientCert, tls.VersionTLS12, true, false},
		{"no certificate is asked for", []*x509.Certificate{old, next}, tls.NoClientCert, tls.VersionTLS13, false, false},
		{"none is known", nil, tls.RequestClientCert, tls.VersionTLS13, false, false},
	} {
		server := httptest.NewUnstartedServer(nil)
		pool := x509.NewCertPool()
		for _, ca := range test.knows {
			pool.AddCert(ca)
		}
		server.TLS = &tls.Config{ClientCAs: pool, ClientAuth: test.auth, MaxVersion: test.version}
		server.StartTLS()
		shown, err := Ask(t.Context(), Server{Address: server.Listener.Addr().String()})
		server.Close()
		if err != nil || len(shown.Chain) == 0 {
			t.Errorf("%s: %v, chain %q", test.reason, err, shown.Chain)
		}
		if got := shown.AcceptsAll([]*x509.Certificate{old, next}); got != test.both {
			t.Errorf("%s: accepts both: %v", test.reason, got)
		}
		if got := shown.AcceptsOnly([]*x509.Certificate{next}); got != test.onlyIt {
			t.Errorf("%s: accepts the new one alone: %v", test.reason, got)
		}
		if shown.AcceptsAll(nil) || shown.AcceptsOnly(nil) {
			t.Errorf("%s: no CA at all is accepted", test.reason)
		}
	}
}

// TestAskNobody returns an error where no one answers, or not in TLS.
func TestAskNobody(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	plain := httptest.NewServer(nil)
	defer plain.Close()
	for reason, address := range map[string]string{"no one listens": address, "it is not TLS": plain.Listener.Addr().String()} {
		if _, err := Ask(t.Context(), Server{Address: address}); err == nil {
			t.Errorf("%s: no error", reason)
		}
	}
}
