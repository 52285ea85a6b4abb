// Package trusttest makes certificate authorities for tests.
package trusttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"github.com/clusterregistry/operator/operator/trust"
)

// CA is a CA of a test.
type CA struct {
	// PEM is its certificate.
	PEM []byte

	t           *testing.T
	name        string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewCA returns a CA that signs itself. All have the same name, as those have that
// cert-manager makes one after the other.
func NewCA(t *testing.T, notAfter time.Time) CA {
	t.Helper()
	return NamedCA(t, "fleet-serving-ca", notAfter)
}

// NamedCA returns a CA that signs itself, with a name of its own, as each generation has.
func NamedCA(t *testing.T, name string, notAfter time.Time) CA {
	t.Helper()
	return CA{t: t, name: name}.Intermediate(notAfter)
}

// Intermediate returns another CA, which this one has signed.
func (ca CA) Intermediate(notAfter time.Time) CA {
	ca.t.Helper()
	out := CA{t: ca.t, name: ca.name, key: newKey(ca.t)}
	out.certificate = ca.sign(out.key, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: notAfter})
	out.PEM = trust.Encode(out.certificate)
	return out
}

// Renewed returns the CA with another certificate for the same key.
func (ca CA) Renewed() CA {
	ca.t.Helper()
	template := *ca.certificate
	ca.certificate = CA{t: ca.t, name: ca.name}.sign(ca.key, &template)
	ca.PEM = trust.Encode(ca.certificate)
	return ca
}

// Leaf returns a certificate that the CA has signed, in PEM. It is valid for an hour.
func (ca CA) Leaf() []byte {
	ca.t.Helper()
	return trust.Encode(ca.sign(newKey(ca.t), &x509.Certificate{DNSNames: []string{"fleet-server"}, NotAfter: time.Now().Add(time.Hour)}))
}

// sign returns a certificate for a key. A CA without a certificate has it sign itself.
func (ca CA) sign(key *ecdsa.PrivateKey, template *x509.Certificate) *x509.Certificate {
	ca.t.Helper()
	template.SerialNumber, template.Subject, template.NotBefore = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: ca.name}, time.Now().Add(-time.Hour)
	parent, signer := ca.certificate, ca.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		ca.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		ca.t.Fatal(err)
	}
	return certificate
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
