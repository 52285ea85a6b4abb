package framework

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a certificate authority for a test.
type Authority struct {
	// PEM is its certificate; File holds the same.
	PEM  []byte
	File string

	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate with its key, as files in PEM.
type Pair struct{ Cert, Key string }

// NewAuthority makes an authority with the given common name.
func NewAuthority(t *testing.T, name string) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir()}
	pair, cert, key := a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.cert, a.key, a.File = cert, key, pair.Cert
	a.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	return a
}

// Secret returns the authority as the data of a Secret that cert-manager signs with.
func (a *Authority) Secret() map[string][]byte {
	a.t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return map[string][]byte{"tls.crt": a.PEM, "ca.crt": a.PEM, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})}
}

// Issue makes a certificate for a client and server of the given common name,
// groups and host names.
func (a *Authority) Issue(name string, groups []string, hosts ...string) Pair {
	a.t.Helper()
	pair, _, _ := a.issue(leaf(name, groups, hosts))
	return pair
}

// IssueExpired is Issue for a certificate that has expired a minute ago.
func (a *Authority) IssueExpired(name string, groups []string, hosts ...string) Pair {
	a.t.Helper()
	template := leaf(name, groups, hosts)
	template.NotAfter = time.Now().Add(-time.Minute)
	pair, _, _ := a.issue(template)
	return pair
}

func leaf(name string, groups, hosts []string) *x509.Certificate {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template
}

func (a *Authority) issue(template *x509.Certificate) (Pair, *x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	must := func(err error) {
		if err != nil {
			a.t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	must(err)
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(24 * time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(err)
	cert, err := x509.ParseCertificate(der)
	must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	dir, err := os.MkdirTemp(a.dir, "pair-")
	must(err)
	pair := Pair{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	must(os.WriteFile(pair.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(os.WriteFile(pair.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return pair, cert, key
}
