package authn

import (
	"crypto/x509"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/utils/lru"
)

// remembered is how many certificates are remembered: each connection has its own copy.
const remembered = 256

// Verified remembers the client certificates that a CA vouches for. A connection has one
// certificate for all of its requests, and to verify it anew for each takes a tenth of the
// server's CPU. Nothing but a success is remembered, so that no stranger fills the memory.
type Verified struct {
	options x509request.VerifyOptionFunc
	known   *lru.Cache
	now     func() time.Time
}

// verified is what is known of a certificate.
type verified struct {
	chains [][]*x509.Certificate
	// roots are the CAs that it was verified by: others are in force once they are replaced.
	roots *x509.CertPool
	// until is when the first certificate of a chain expires.
	until time.Time
}

// NewVerified returns a memory of what is verified by options, which are asked each time.
func NewVerified(options x509request.VerifyOptionFunc) *Verified {
	return &Verified{options: options, known: lru.New(remembered), now: time.Now}
}

// Chains returns the chains that lead from the certificate of a request to the CAs in force,
// nil when it is not remembered that there are any. It is then verified and remembered for the
// requests that follow: this one is to be authenticated in the ordinary way, which counts
// certificates and says what is wrong with one.
func (v *Verified) Chains(req *http.Request) [][]*x509.Certificate {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return nil
	}
	options, ok := v.options()
	if !ok {
		return nil
	}
	leaf := req.TLS.PeerCertificates[0]
	if known, ok := v.known.Get(leaf); ok {
		if known := known.(*verified); known.roots == options.Roots && v.now().Before(known.until) {
			return known.chains
		}
		v.known.Remove(leaf)
	}
	v.remember(options, req.TLS.PeerCertificates)
	return nil
}

// remember verifies a certificate, with the intermediate ones that came with it.
func (v *Verified) remember(options x509.VerifyOptions, certificates []*x509.Certificate) {
	roots := options.Roots
	if options.Intermediates == nil && len(certificates) > 1 {
		options.Intermediates = x509.NewCertPool()
		for _, intermediate := range certificates[1:] {
			options.Intermediates.AddCert(intermediate)
		}
	}
	chains, err := certificates[0].Verify(options)
	if err != nil || roots == nil {
		return
	}
	v.known.Add(certificates[0], &verified{chains, roots, expiry(chains)})
}

// expiry returns when the first certificate of any chain expires.
func expiry(chains [][]*x509.Certificate) (first time.Time) {
	for _, chain := range chains {
		for _, certificate := range chain {
			if first.IsZero() || certificate.NotAfter.Before(first) {
				first = certificate.NotAfter
			}
		}
	}
	return first
}

// byCertificate authenticates callers by a client certificate.
type byCertificate struct {
	verified *Verified
	// ordinary decides on certificates that are not remembered.
	ordinary authenticator.Request
}

func newByCertificate(options x509request.VerifyOptionFunc) authenticator.Request {
	return byCertificate{NewVerified(options), x509request.NewDynamic(options, x509request.CommonNameUserConversion)}
}

// AuthenticateRequest says who a caller is by the certificate of its connection.
func (c byCertificate) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	for _, chain := range c.verified.Chains(req) {
		if response, ok, err := x509request.CommonNameUserConversion.User(chain); ok && err == nil {
			return response, true, nil
		}
	}
	return c.ordinary.AuthenticateRequest(req)
}
