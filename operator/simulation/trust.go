package simulation

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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
	for of, check := range map[string]struct {
		der     []byte
		options x509.VerifyOptions
	}{
		"the member's": {shown.Bytes, x509.VerifyOptions{Roots: roots, DNSName: host}},
		"the client's": {client, x509.VerifyOptions{Roots: w.verified.pool(p.trust), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}},
	} {
		if err := w.verified.verify(check.der, check.options); err != nil {
			return fmt.Errorf("the other side does not trust %s certificate: %w", of, err)
		}
	}
	return nil
}

// verified remembers which certificates were trusted, until they expire: members and servers are
// asked again and again with the same ones. Several may be asked at once.
type verified struct {
	lock  sync.Mutex
	pools map[string]*x509.CertPool
	of    map[shown][]*x509.CertPool
	until map[string]time.Time
}

// shown is a certificate that is to be valid for a name, as that of a server unless it is a client's.
type shown struct {
	der, name string
	client    bool
}

// pool returns what a bundle of CA certificates is verified with.
func (v *verified) pool(bundle []byte) *x509.CertPool {
	v.lock.Lock()
	defer v.lock.Unlock()
	if known, is := v.pools[string(bundle)]; is {
		return known
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	if v.pools == nil {
		v.pools = map[string]*x509.CertPool{}
	}
	v.pools[string(bundle)] = pool
	return pool
}

// verify returns why a certificate is not trusted.
func (v *verified) verify(der []byte, options x509.VerifyOptions) error {
	v.lock.Lock()
	defer v.lock.Unlock()
	asked := shown{string(der), options.DNSName, len(options.KeyUsages) > 0}
	if time.Now().Before(v.until[asked.der]) && slices.ContainsFunc(v.of[asked], options.Roots.Equal) {
		return nil
	}
	certificate, err := x509.ParseCertificate(der)
	if err == nil {
		_, err = certificate.Verify(options)
	}
	if err != nil {
		return err
	}
	if v.of == nil {
		v.of, v.until = map[shown][]*x509.CertPool{}, map[string]time.Time{}
	}
	v.of[asked], v.until[asked.der] = append(v.of[asked], options.Roots), certificate.NotAfter
	return nil
}
