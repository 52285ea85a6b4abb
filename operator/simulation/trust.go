package simulation

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/clusterregistry/operator/internal/etcdclient"
)

// trusted returns why a member and the operator do not trust each other, which must not happen at
// any moment (invariant 9).
func (w *world) trusted(p *process, m etcdclient.Member) error {
	if m.TLS == nil || len(m.TLS.Certificates) == 0 {
		return errors.New("remote error: tls: certificate required")
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(m.URL, "https://"), ":")
	err := w.trust(p, m.TLS.RootCAs, host, m.TLS.Certificates[0].Certificate[0])
	if err != nil {
		w.broken = p.name + ": " + err.Error()
	}
	return err
}

// trust returns why a member and a client that asks for it by a name do not trust each other.
func (w *world) trust(p *process, roots *x509.CertPool, host string, client []byte) error {
	shown, _ := pem.Decode(w.secret("fleet-etcd-server", "tls.crt"))
	trusts := x509.NewCertPool()
	trusts.AppendCertsFromPEM(p.trust)
	for of, check := range map[string]struct {
		der     []byte
		options x509.VerifyOptions
	}{
		"the member's": {shown.Bytes, x509.VerifyOptions{Roots: roots, DNSName: host}},
		"the client's": {client, x509.VerifyOptions{Roots: trusts, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}},
	} {
		certificate, err := x509.ParseCertificate(check.der)
		if err == nil {
			_, err = certificate.Verify(check.options)
		}
		if err != nil {
			return fmt.Errorf("the other side does not trust %s certificate: %w", of, err)
		}
	}
	return nil
}
