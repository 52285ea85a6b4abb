// Package pki makes the certificates and kubeconfigs of the local cluster.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is far beyond the life of any local cluster.
const validity = 10 * 365 * 24 * time.Hour

// Store is a folder of certificates and keys, as NAME.crt and NAME.key.
type Store struct{ Dir string }

// Authority is a CA of a store.
type Authority struct {
	store Store
	cert  *x509.Certificate
	key   crypto.Signer
}

// Cert returns the path of a certificate.
func (s Store) Cert(name string) string { return filepath.Join(s.Dir, name+".crt") }

// Key returns the path of a private key.
func (s Store) Key(name string) string { return filepath.Join(s.Dir, name+".key") }

// Authority makes a self-signed CA.
func (s Store) Authority(name string) (*Authority, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := template(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	a := &Authority{store: s, cert: template, key: key}
	a.cert, err = a.sign(name, template, key)
	return a, err
}

// Issue makes a certificate for the subject that serves and dials, valid for
// the given host names and addresses.
func (a *Authority) Issue(name string, subject pkix.Name, hosts ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template, err := template(subject)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	_, err = a.sign(name, template, key)
	return err
}

func (a *Authority) sign(name string, template *x509.Certificate, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", name, err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	certPEM, err := cert.EncodeCertificates(signed)
	if err != nil {
		return nil, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	return signed, errors.Join(cert.WriteCert(a.store.Cert(name), certPEM), keyutil.WriteKey(a.store.Key(name), keyPEM))
}

func template(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity)}, nil
}

// ServiceAccountKey makes the key that signs service account tokens; its
// public half is NAME.pub. RSA, because OIDC clients all know RS256.
func (s Store) ServiceAccountKey(name string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: der})
	return errors.Join(keyutil.WriteKey(s.Key(name), keyPEM), os.WriteFile(s.PublicKey(name), public, 0o644))
}

// PublicKey returns the path of a public key.
func (s Store) PublicKey(name string) string { return filepath.Join(s.Dir, name+".pub") }

// Kubeconfig writes a kubeconfig for the named certificate with everything
// inline, so that the file can be copied anywhere. The user has the context's name, too,
// so that kubeconfigs of several clusters can be merged.
func (s Store) Kubeconfig(path, context, server, authority, name string) error {
	ca, err := os.ReadFile(s.Cert(authority))
	if err != nil {
		return err
	}
	crt, err := os.ReadFile(s.Cert(name))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(s.Key(name))
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[context] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	user := name + "@" + context
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: crt, ClientKeyData: key}
	config.Contexts[context] = &clientcmdapi.Context{Cluster: context, AuthInfo: user}
	config.CurrentContext = context
	return clientcmd.WriteToFile(*config, path)
}
