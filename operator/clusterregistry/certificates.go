package clusterregistry

import (
	"context"
	"fmt"
	"strings"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/render"
)

// caWarning is how long before the end of a CA its condition warns: to exchange
// it takes planning.
const caWarning = 365 * 24 * time.Hour

// certificates is complete when every Certificate is issued as it is wanted, and
// the CAs are known.
func (r *Reconciler) certificates(ctx context.Context, s *scope) *hold {
	// What was issued before lasts without cert-manager for a while.
	usable := s.trusted()
	installed, err := r.certManager.installed(ctx, r.Client)
	if err != nil {
		return failed(err)
	}
	if !installed {
		s.registry.Status.Certificates = nil
		return waitFor(operatorv1alpha1.ReasonCertManagerNotInstalled, "cert-manager, which issues the registry's certificates, is not installed on the host: install it (https://cert-manager.io/docs/installation); the operator goes on by itself then").impairedIf(usable)
	}
	if err := r.apply(ctx, s, s.rendered.Stages[render.StageCertificates]...); err != nil {
		return failed(err)
	}
	var waiting []string
	issued := true
	s.registry.Status.Certificates = nil
	for _, object := range s.rendered.Stages[render.StageCertificates] {
		if object.GetKind() != certmanagerv1.CertificateKind {
			continue
		}
		certificate := &certmanagerv1.Certificate{}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), certificate); err != nil && !apierrors.IsNotFound(err) {
			return failed(err)
		}
		if certificate.Name == "" {
			waiting, issued = append(waiting, fmt.Sprintf("Certificate %s does not exist yet", object.GetName())), false
			continue
		}
		issued = issued && certificate.Status.NotAfter != nil
		s.registry.Status.Certificates = append(s.registry.Status.Certificates, operatorv1alpha1.CertificateStatus{
			Name: certificate.Name, NotAfter: certificate.Status.NotAfter, RenewalTime: certificate.Status.RenewalTime})
		if problem := s.certificateProblem(certificate); problem != "" {
			if why := r.requestProblem(ctx, certificate); why != "" {
				problem += " (" + why + ")"
			}
			waiting = append(waiting, problem)
		}
	}
	if len(waiting) > 0 {
		return waitFor(operatorv1alpha1.ReasonCertificateNotReady, "%s", several(waiting)).impairedIf(usable && issued)
	}
	if !s.trusted() {
		return waitFor(operatorv1alpha1.ReasonCertificateNotReady, "the CAs' certificates are issued, but not all of their Secrets can be read yet").in(soon).frozen()
	}
	return nil
}

// several joins what is waited for, and counts what would only repeat itself.
func several(waiting []string) string {
	const most = 3
	if len(waiting) <= most {
		return strings.Join(waiting, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(waiting[:most], "; "), len(waiting)-most)
}

// certificateProblem returns why a Certificate is not as wanted, in cert-manager's
// own words, or nothing. Of a CA that ends soon it leaves a note.
func (s *scope) certificateProblem(c *certmanagerv1.Certificate) string {
	if c.Spec.IsCA && c.Status.NotAfter != nil && c.Status.NotAfter.Sub(s.now) < caWarning {
		s.results[operatorv1alpha1.ConditionCertificatesReady] = result{reason: operatorv1alpha1.ReasonCAExpiring,
			note: fmt.Sprintf("the CA %s ends on %s: plan its exchange", c.Name, c.Status.NotAfter.Format(time.DateOnly))}
	}
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
		return fmt.Sprintf("Certificate %s waits for cert-manager to look at it", c.Name)
	case ready.Status == cmmetav1.ConditionTrue:
		return ""
	case c.Status.LastFailureTime != nil:
		return fmt.Sprintf("Certificate %s is not issued: %s cert-manager tries again an hour after %s", c.Name, sentence(issuing.Message), c.Status.LastFailureTime.Format(time.RFC3339))
	}
	return fmt.Sprintf("Certificate %s is not issued yet: %s", c.Name, ready.Message)
}

// sentence ends a text with a period.
func sentence(text string) string {
	return strings.TrimRight(text, ". ") + "."
}

// trusted reports whether all CAs are known that the registry brings. That of an
// external etcd is the next stage's.
func (s *scope) trusted() bool {
	return (len(s.trust.Etcd) > 0 || s.registry.Spec.Etcd.External != nil) && len(s.trust.Serving) > 0 &&
		(s.registry.Spec.Mode == operatorv1alpha1.ModeAggregated || len(s.trust.Clients) > 0)
}
