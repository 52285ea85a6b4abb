package diagnose

import (
	"context"
	"fmt"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// caWarning is how long before a CA expires ExpiringCA warns: to replace it takes
// planning.
const caWarning = 365 * 24 * time.Hour

// Certificate says why a Certificate is not issued as its spec has it, in
// cert-manager's own words; empty when it is.
func Certificate(c *certmanagerv1.Certificate) string {
	var ready, issuing certmanagerv1.CertificateCondition
	for _, condition := range c.Status.Conditions {
		switch condition.Type {
		case certmanagerv1.CertificateConditionReady:
			ready = condition
		case certmanagerv1.CertificateConditionIssuing:
			issuing = condition
		}
	}
	switch {
	case ready.Status == "" || ready.ObservedGeneration < c.Generation && ready.Status == cmmetav1.ConditionTrue:
		return fmt.Sprintf("Certificate %s is waiting for cert-manager to process it", c.Name)
	case ready.Status == cmmetav1.ConditionTrue:
		return ""
	case c.Status.LastFailureTime != nil:
		return fmt.Sprintf("Certificate %s is not issued: %s cert-manager retries at %s, or at once with: cmctl renew %s", c.Name, sentence(issuing.Message), retry(c).UTC().Format(time.RFC3339), c.Name)
	}
	return fmt.Sprintf("Certificate %s is not issued yet: %s", c.Name, ready.Message)
}

// retry returns when cert-manager tries again to issue a certificate: an hour after the first
// failure, and twice as long after each further one, up to 32 hours, as its controller
// certificates-trigger does.
func retry(c *certmanagerv1.Certificate) time.Time {
	const mostDoublings = 5
	failures := 1
	if attempts := c.Status.FailedIssuanceAttempts; attempts != nil {
		failures = max(1, *attempts)
	}
	return c.Status.LastFailureTime.Add(time.Hour << min(failures-1, mostDoublings))
}

// CertificateRequest returns what the approver or the issuer says of a Certificate's next
// request that is not granted, or that no one has approved it yet; empty when there is none.
func (d Diagnoser) CertificateRequest(ctx context.Context, c *certmanagerv1.Certificate) string {
	revision := 1
	if c.Status.Revision != nil {
		revision += *c.Status.Revision
	}
	request := &certmanagerv1.CertificateRequest{}
	if err := d.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: fmt.Sprintf("%s-%d", c.Name, revision)}, request); err != nil {
		return ""
	}
	of := map[certmanagerv1.CertificateRequestConditionType]certmanagerv1.CertificateRequestCondition{}
	for _, condition := range request.Status.Conditions {
		of[condition.Type] = condition
	}
	switch ready := of[certmanagerv1.CertificateRequestConditionReady]; {
	case of[certmanagerv1.CertificateRequestConditionDenied].Status == cmmetav1.ConditionTrue:
		return fmt.Sprintf("CertificateRequest %s is denied: %s", request.Name, of[certmanagerv1.CertificateRequestConditionDenied].Message)
	case of[certmanagerv1.CertificateRequestConditionApproved].Status != cmmetav1.ConditionTrue && ready.Status == "":
		return fmt.Sprintf("CertificateRequest %s is waiting for approval, by cert-manager itself, an approver such as approver-policy, or cmctl approve", request.Name)
	case ready.Status == cmmetav1.ConditionFalse:
		return ready.Message
	}
	return ""
}

// ExpiringCA says of a CA that expires within a year of now, or has expired, when that
// is and what to do; empty for all others. Leaf certificates are renewed
// automatically.
func ExpiringCA(c *certmanagerv1.Certificate, now time.Time) string {
	if !c.Spec.IsCA || c.Status.NotAfter == nil || c.Status.NotAfter.Sub(now) >= caWarning {
		return ""
	}
	return fmt.Sprintf("the CA %s expires on %s; cert-manager renews it with the same key %s, and what has to be done then is in docs/how-to/certificates.md, \"When a CA expires\"", c.Name, c.Status.NotAfter.Format(time.DateOnly), renewal(c))
}

// ShortLived says of a certificate that its issuer has given less than nine tenths of the time
// that was asked for, and that it is renewed again and again if spec.tls.renewBefore leaves no
// time between; empty for all others, and for one that is not as its spec has it yet.
func ShortLived(c *certmanagerv1.Certificate) string {
	if c.Spec.IsCA || c.Spec.Duration == nil || c.Status.NotBefore == nil || c.Status.NotAfter == nil || Certificate(c) != "" {
		return ""
	}
	lifetime := c.Status.NotAfter.Sub(c.Status.NotBefore.Time)
	if lifetime >= c.Spec.Duration.Duration/10*9 {
		return ""
	}
	out := fmt.Sprintf("the issuer gives Certificate %s a lifetime of %s, where spec.tls.duration asks for %s", c.Name, lifetime, c.Spec.Duration.Duration)
	if c.Status.RenewalTime != nil && c.Status.RenewalTime.Sub(c.Status.NotBefore.Time) < lifetime/10 {
		out += ", so cert-manager renews it again and again: set spec.tls.renewBefore to less than that lifetime, or remove it"
	}
	return out
}

// renewal says when cert-manager renews a certificate.
func renewal(c *certmanagerv1.Certificate) string {
	if c.Status.RenewalTime == nil {
		return "before that"
	}
	return "on " + c.Status.RenewalTime.Format(time.DateOnly)
}
