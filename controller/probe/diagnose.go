package probe

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterregistry/operator/apis/clusterregistry/address"
)

// diagnose says why a target was not reached. It takes the kind of an error, not its
// text: that has addresses that change, and what the server has sent.
func diagnose(target Target, base *url.URL, roots *x509.CertPool, err error, timeout time.Duration) Result {
	host := base.Host
	failed := func(reason, format string, args ...any) Result {
		return Result{Outcome: Failed, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	var (
		refusal  *address.Refusal
		dns      *net.DNSError
		untrust  *tls.CertificateVerificationError
		record   tls.RecordHeaderError
		op       *net.OpError
		exceeded net.Error
	)
	switch {
	case errors.As(err, &refusal):
		return refused(target, refusal)
	case errors.As(err, &dns) && dns.IsNotFound:
		return failed(ReasonDNSFailed, "The name %s does not exist in DNS.", base.Hostname())
	case errors.As(err, &dns):
		return failed(ReasonDNSFailed, "DNS does not resolve the name %s now.", base.Hostname())
	case errors.As(err, &untrust):
		return untrusted(target, base, roots, untrust)
	case errors.Is(err, syscall.ECONNREFUSED):
		return failed(ReasonConnectionRefused, "%s refuses connections: no API server listens there.", host)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return failed(ReasonNoRoute, "The network has no route to %s.", host)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &exceeded) && exceeded.Timeout():
		return failed(ReasonTimedOut, "%s does not answer within %s.", host, timeout)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return failed(ReasonTLSFailed, "%s does not speak TLS.", host)
	case errors.As(err, &op) && op.Op == "remote error":
		return failed(ReasonTLSFailed, "%s ends the TLS handshake: %v.", host, op.Err) // one of TLS's own alerts
	}
	return failed(ReasonConnectionFailed, "The connection to %s breaks before there is an answer.", host)
}

func refused(target Target, refusal *address.Refusal) Result {
	message := fmt.Sprintf("%s.url is not asked, since %v.", target.Field, refusal)
	if refusal.Inside {
		message += " health.allowedCIDRs (--health-allowed-cidrs) can permit it."
	}
	return Result{Outcome: NotAsked, Reason: ReasonAddressRefused, Message: message}
}

// untrusted says what is wrong with a certificate. Go looks at dates and names first;
// but those of a stranger's certificate are nothing to correct.
func untrusted(target Target, base *url.URL, roots *x509.CertPool, err *tls.CertificateVerificationError) Result {
	failed := func(reason, format string, args ...any) Result {
		return Result{Outcome: Failed, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	var (
		invalid x509.CertificateInvalidError
		name    x509.HostnameError
	)
	switch {
	case len(err.UnverifiedCertificates) > 0 && stranger(err.UnverifiedCertificates, roots):
		return wrongCA(target, base, err.UnverifiedCertificates)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		what := "The certificate of " + base.Host
		if invalid.Cert.IsCA {
			what = "A CA certificate of " + base.Host
		}
		if time.Now().Before(invalid.Cert.NotBefore) {
			return failed(ReasonCertificateNotYetValid, "%s is not valid before %s.", what, date(invalid.Cert.NotBefore))
		}
		return failed(ReasonCertificateExpired, "%s expired at %s.", what, date(invalid.Cert.NotAfter))
	case errors.As(err, &name):
		want := target.Endpoint.TLSServerName
		if want == "" {
			want = base.Hostname()
		}
		return failed(ReasonCertificateNameMismatch, "The certificate of %s is not for %s%s. %s.tlsServerName can name another.", base.Host, want, names(name.Certificate), target.Field)
	case errors.As(err, &invalid):
		return failed(ReasonCertificateUntrusted, "The certificate of %s is signed by the entry's CA, but not fit for a server: %s.", base.Host, unfit(invalid.Reason))
	case len(err.UnverifiedCertificates) == 0:
		return failed(ReasonCertificateUntrusted, "%s shows no certificate that can be verified.", base.Host)
	}
	return wrongCA(target, base, err.UnverifiedCertificates)
}

// stranger reports whether no CA has signed a certificate, whatever else is wrong.
func stranger(shown []*x509.Certificate, roots *x509.CertPool) bool {
	options := x509.VerifyOptions{
		Roots: roots, Intermediates: x509.NewCertPool(),
		// A time at which the certificate itself is valid. A CA that is not valid then is
		// still a CA that has signed it.
		CurrentTime: shown[0].NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	for _, certificate := range shown[1:] {
		options.Intermediates.AddCert(certificate)
	}
	_, err := shown[0].Verify(options)
	var unknown x509.UnknownAuthorityError
	return errors.As(err, &unknown)
}

// unfit says why a certificate that a CA has signed is refused.
func unfit(reason x509.InvalidReason) string {
	switch reason {
	case x509.NotAuthorizedToSign:
		return "one that signed it is not a CA"
	case x509.IncompatibleUsage:
		return "its extended key usage is not that of a server"
	case x509.CANotAuthorizedForThisName:
		return "a CA may not sign for its names"
	case x509.TooManyIntermediates, x509.TooManyConstraints:
		return "its chain is too long"
	}
	return "it breaks a rule of X.509"
}

// wrongCA says who has signed the certificates that are shown, and who should have.
func wrongCA(target Target, base *url.URL, chain []*x509.Certificate) Result {
	shown := chain[len(chain)-1]
	trusted := fmt.Sprintf("and %s.caBundle is empty, so that only public CAs are trusted", target.Field)
	if cas := fingerprints(target.Endpoint.CABundle); cas != "" {
		trusted = fmt.Sprintf("%s.caBundle has SHA-256 %s", target.Field, cas)
	}
	return Result{Outcome: Failed, Reason: ReasonCertificateUntrusted, Message: fmt.Sprintf("The certificate of %s is not signed by the entry's CA: it shows SHA-256 %s, %s.", base.Host, fingerprint(shown.Raw), trusted)}
}

// shownNames bounds the names of a certificate, and the CAs of a bundle, in a message.
const shownNames = 3

// names returns the first names of a certificate that are names: a certificate can
// have any text there.
func names(certificate *x509.Certificate) string {
	var out []string
	for _, name := range certificate.DNSNames {
		if len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) == 0 {
			out = append(out, name)
		}
	}
	for _, ip := range certificate.IPAddresses {
		out = append(out, ip.String())
	}
	if len(out) == 0 {
		return ""
	}
	return ", but for " + list(out)
}

// fingerprints returns those of the certificates in PEM.
func fingerprints(bundle []byte) string {
	var out []string
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		out = append(out, fingerprint(block.Bytes))
	}
	return list(out)
}

func list(items []string) string {
	if more := len(items) - shownNames; more > 0 {
		items = append(items[:shownNames:shownNames], fmt.Sprintf("%d more", more))
	}
	return strings.Join(items, ", ")
}

// fingerprint is written as openssl x509 -fingerprint -sha256 does.
func fingerprint(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

// date is written as the registry's API does.
func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }
