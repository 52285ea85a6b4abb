package trust

import (
	"crypto/x509"
	"errors"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// issuanceRetry is how long a request to issue a certificate again is left to
// cert-manager before it is made again.
const issuanceRetry = 5 * time.Minute

// triggered is the reason by which cert-manager knows that someone asked for it.
const triggered = "ManuallyTriggered"

// SignedBy reports whether a CA of a bundle has signed a certificate, which may be
// followed by intermediate ones. What is no certificate counts as signed, and so
// does one that has expired, since that is for others to report; so does every one
// when the bundle is empty.
func SignedBy(leaf, bundle []byte) bool {
	chain, authorities := Parse(leaf), Parse(bundle)
	if len(chain) == 0 || len(authorities) == 0 {
		return true
	}
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	for _, certificate := range authorities {
		options.Roots.AddCert(certificate)
	}
	for _, certificate := range chain[1:] {
		options.Intermediates.AddCert(certificate)
	}
	_, err := chain[0].Verify(options)
	var unknown x509.UnknownAuthorityError
	return !errors.As(err, &unknown)
}

// RequestIssuance sets the condition that has cert-manager issue a certificate again,
// as "cmctl renew" does. It returns false, and changes nothing, where that is under
// way or was asked for a short while ago.
func RequestIssuance(c *certmanagerv1.Certificate, now time.Time) bool {
	request := certmanagerv1.CertificateCondition{Type: certmanagerv1.CertificateConditionIssuing, Status: cmmetav1.ConditionTrue,
		Reason: triggered, Message: "The CA of the issuer was replaced", ObservedGeneration: c.Generation, LastTransitionTime: new(metav1.NewTime(now))}
	for i, condition := range c.Status.Conditions {
		if condition.Type != request.Type {
			continue
		}
		if condition.Status == request.Status || condition.LastTransitionTime != nil && now.Sub(condition.LastTransitionTime.Time) < issuanceRetry {
			return false
		}
		c.Status.Conditions[i] = request
		return true
	}
	c.Status.Conditions = append(c.Status.Conditions, request)
	return true
}
