package clusterregistry

import (
	"context"
	"fmt"
	"slices"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/diagnose"
	"github.com/clusterregistry/operator/operator/endpoint"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// certificates is complete when every Certificate is issued and up to date, and
// the CAs are known.
func (r *Reconciler) certificates(ctx context.Context, s *scope) verdict.Verdict {
	// What was issued before lasts without cert-manager for a while.
	usable := s.trusted()
	installed, err := r.certManager.installed(ctx, r.Client)
	if err != nil {
		return verdict.Failed(err)
	}
	if !installed {
		s.registry.Status.Certificates = nil
		return s.withCAs(verdict.Waiting(operatorv1alpha1.ReasonCertManagerNotInstalled, "cert-manager, which issues the registry's certificates, is not installed in the host cluster: install it (https://cert-manager.io/docs/installation); the operator then continues automatically").DegradedIf(usable))
	}
	if v := r.foreignSecret(ctx, s); !v.Complete() {
		return s.withCAs(v.DegradedIf(usable))
	}
	if v := r.announce(ctx, s); !v.Complete() {
		return v
	}
	if err := unlessReadOnly(r.apply(ctx, s, s.issuable()...)); err != nil {
		return verdict.Failed(err)
	}
	// A port that the host refuses is the endpoint's to tell: nothing here needs it.
	if err := unlessReadOnly(r.applyService(ctx, s)); err != nil && (endpoint.NodePortRefused(err) == "" || s.registry.Spec.Mode != operatorv1alpha1.ModeIndependent) {
		return verdict.Failed(err)
	}
	var waiting []string
	v, issued := done, true
	s.registry.Status.Certificates = nil
	for _, object := range s.rendered.Stages[render.StageCertificates] {
		if object.GetKind() != certmanagerv1.CertificateKind {
			continue
		}
		certificate := &certmanagerv1.Certificate{}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), certificate); err != nil && !apierrors.IsNotFound(err) {
			return verdict.Failed(err)
		}
		if certificate.Name == "" {
			waiting, issued = append(waiting, fmt.Sprintf("Certificate %s does not exist yet", object.GetName())), false
			continue
		}
		issued = issued && certificate.Status.NotAfter != nil
		s.registry.Status.Certificates = append(s.registry.Status.Certificates, operatorv1alpha1.CertificateStatus{
			Name: certificate.Name, NotAfter: certificate.Status.NotAfter, RenewalTime: certificate.Status.RenewalTime})
		v = s.expiryNoted(v, certificate)
		problem := diagnose.Certificate(certificate)
		if r.Applier.Behind(object, certificate) {
			// Its status is about what was desired before.
			problem = fmt.Sprintf("Certificate %s was changed just now", certificate.Name)
		}
		if problem != "" {
			if why := r.diagnoser().CertificateRequest(ctx, certificate); why != "" {
				problem += " (" + why + ")"
			}
			waiting = append(waiting, problem)
		}
	}
	if len(waiting) > 0 {
		return s.withCAs(verdict.Waiting(operatorv1alpha1.ReasonCertificateNotReady, "%s", diagnose.Join(waiting)).DegradedIf(usable && issued))
	}
	if s.missing() != "" {
		return s.withCAs(verdict.Waiting(operatorv1alpha1.ReasonCAMissing, "the CAs' certificates are issued, but not all of their Secrets can be read yet").In(verdict.Soon))
	}
	return r.replacedCAs(ctx, s, v)
}

// issuable are the objects of the stage, but for the Service. As long as it is not
// known which CA will sign the servers' certificate, that stays as it is: clients
// trust what signed it.
func (s *scope) issuable() []*unstructured.Unstructured {
	keepServing := s.servingCA.Current == nil && len(s.servingCA.Published) > 0
	return slices.DeleteFunc(slices.Clone(s.rendered.Stages[render.StageCertificates]), func(o *unstructured.Unstructured) bool {
		return o.GetKind() == serviceKind || keepServing && o.GetKind() == certmanagerv1.CertificateKind && o.GetName() == s.registry.Name+contract.ServingSuffix
	})
}

// withCAs returns a verdict as it is when all CAs are known. Else it says which are
// not, and nothing may be changed: what is published stays as it was.
func (s *scope) withCAs(v verdict.Verdict) verdict.Verdict {
	missing := s.missing()
	if missing == "" {
		return v
	}
	if s.installed() {
		v.Reason = operatorv1alpha1.ReasonCAMissing
		v.Message = fmt.Sprintf("%s: there is no CA certificate there; nothing is changed until there is, and what was published stays in force; %s", missing, v.Message)
	}
	return v.AsReadOnly()
}

// replacedCAs is complete when everything that is in use is signed by the present
// CAs, and nothing else is published. It adds to a verdict that is done.
func (r *Reconciler) replacedCAs(ctx context.Context, s *scope, found verdict.Verdict) verdict.Verdict {
	if v := r.reissue(ctx, s, s.servingLeaves()); !v.Complete() {
		return v.DegradedIf(true)
	}
	shown, err := r.secretValue(ctx, s.registry.Namespace, s.registry.Name+contract.ServingSuffix, corev1.TLSCertKey)
	if err != nil {
		return verdict.Failed(err)
	}
	switch {
	case s.readOnly && s.servingCA.Replaced() && (!s.servingCA.Announced() || trust.SignedBy(shown, s.servingCA.Current)):
		return verdict.Waiting(operatorv1alpha1.ReasonCAReplaced, "the CA in %s has replaced another one; nothing is changed now, and what is published stays as it is until %s", s.servingCA.Source, s.frozenUntil()).In(vigil).DegradedIf(true)
	case s.servingCA.Replaced() && trust.SignedBy(shown, s.servingCA.Current):
		return verdict.Waiting(operatorv1alpha1.ReasonCAReplaced, "the CA in %s has replaced another one; both are published until every server shows the certificate that it signed, which takes up to two minutes", s.servingCA.Source).In(verdict.Soon).DegradedIf(true)
	case s.servingCA.Replaced():
		return found.Note(operatorv1alpha1.ReasonCAReplaced, fmt.Sprintf("the CA in %s has replaced another one, which signed the servers' certificate: give clients the kubeconfig in Secret %s%s again, which trusts both, before Certificate %s%s is renewed (status.certificates)", s.servingCA.Source, s.registry.Name, contract.KubeconfigSuffix, s.registry.Name, contract.ServingSuffix))
	case s.clientCA.Replaced():
		return found.Note(operatorv1alpha1.ReasonCAReplaced, fmt.Sprintf("the CA in %s has replaced another one; client certificates of both are accepted (status.clientCABundle)", s.clientCA.Source))
	}
	return found
}

// expiryNoted returns a verdict with a note if the Certificate is of a CA that expires
// soon.
func (s *scope) expiryNoted(v verdict.Verdict, c *certmanagerv1.Certificate) verdict.Verdict {
	if problem := diagnose.ExpiringCA(c, s.now); problem != "" {
		return v.Note(operatorv1alpha1.ReasonCAExpiring, problem)
	}
	return v
}

// trusted reports whether there is something to publish of all CAs that the
// registry brings. That of an external etcd is the next stage's.
func (s *scope) trusted() bool {
	return (len(s.trust.Etcd) > 0 || s.registry.Spec.Etcd.External != nil) && len(s.trust.Serving) > 0 &&
		(s.registry.Spec.Mode == operatorv1alpha1.ModeAggregated || len(s.trust.Clients) > 0)
}
