package certificates

import (
	"context"
	"fmt"
	"slices"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/address"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/issuance"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Run is done when every Certificate is issued and up to date, and
// the CAs are known.
func (s *Stage) Run(ctx context.Context) verdict.Verdict {
	if s.Authorities.Err != nil {
		return verdict.Failed(s.Authorities.Err).AsReadOnly()
	}
	// What was issued before lasts without cert-manager for a while.
	usable := s.Authorities.Complete(s.Registry)
	installed, err := s.CertManager.Installed(ctx, s.Client)
	if err != nil {
		return verdict.Failed(err)
	}
	if !installed {
		s.Registry.Status.Certificates = nil
		return s.withCAs(verdict.Waiting(operatorv1alpha1.ReasonCertManagerNotInstalled, "cert-manager, which issues the registry's certificates, is not installed in the host cluster: install it (https://cert-manager.io/docs/installation); the operator then continues automatically").DegradedIf(usable))
	}
	if v := issuance.Permitted(ctx, s.Objects, s.Rendered.Stages[render.StageCertificates]...); !v.Complete() {
		return s.withCAs(v.DegradedIf(usable))
	}
	if err := s.Authorities.Keep(ctx, s.Objects); err != nil {
		return verdict.Failed(err)
	}
	if v := s.announce(ctx); !v.Complete() {
		return v
	}
	// A port that the host refuses is the endpoint's to tell: nothing here needs it. It comes
	// first, since it does not need cert-manager.
	if err := apply.IgnoreReadOnly(address.ApplyService(ctx, s.Objects)); err != nil && (address.NodePortRefused(err) == "" || s.Registry.Spec.Mode != operatorv1alpha1.ModeIndependent) {
		return verdict.Failed(err)
	}
	if err := apply.IgnoreReadOnly(s.Apply(ctx, s.issuable()...)); err != nil {
		return verdict.Failed(err)
	}
	var waiting []string
	v, issued := done, true
	s.Registry.Status.Certificates = nil
	for _, object := range s.Rendered.Stages[render.StageCertificates] {
		if object.GetKind() != certmanagerv1.CertificateKind {
			continue
		}
		certificate, problem, err := issuance.Observe(ctx, s.Objects, object)
		if err != nil {
			return verdict.Failed(err)
		}
		issued = issued && certificate.Status.NotAfter != nil
		v = s.expiryNoted(v, certificate)
		if problem != "" && !s.Authorities.Lost(object.GetName()) {
			waiting = append(waiting, problem)
		}
	}
	s.Authorities.Describe(s.Registry)
	if len(waiting) > 0 {
		return s.withCAs(verdict.Waiting(operatorv1alpha1.ReasonCertificateNotReady, "%s", diagnose.Join(waiting)).DegradedIf(usable && issued))
	}
	if s.Authorities.Missing(s.Registry) != "" {
		return s.withCAs(verdict.Waiting(operatorv1alpha1.ReasonCAMissing, "the CAs' certificates are issued, but not all of their Secrets can be read yet").In(verdict.Soon))
	}
	return s.replacedCAs(ctx, v)
}

// issuable are the objects of the stage, but for the Service. As long as it is not
// known which CA will sign the servers' certificate, that stays as it is: clients
// trust what signed it.
func (s *Stage) issuable() []*unstructured.Unstructured {
	keepServing := s.Authorities.Serving.Current == nil && len(s.Authorities.Serving.Published) > 0
	return slices.DeleteFunc(slices.Clone(s.Rendered.Stages[render.StageCertificates]), func(o *unstructured.Unstructured) bool {
		return o.GetKind() == address.ServiceKind || keepServing && o.GetKind() == certmanagerv1.CertificateKind && o.GetName() == s.Registry.Name+contract.ServingSuffix
	})
}

// withCAs returns a verdict as it is when all CAs are known. Else it says which are
// not, and nothing may be changed: what is published stays as it was.
func (s *Stage) withCAs(v verdict.Verdict) verdict.Verdict {
	missing := s.Authorities.Missing(s.Registry)
	if missing == "" {
		return v
	}
	if s.Installed() {
		v.Reason = operatorv1alpha1.ReasonCAMissing
		v.Message = fmt.Sprintf("%s: there is no CA certificate there; nothing is changed until there is, and what was published stays in force; %s", missing, v.Message)
	}
	return v.AsReadOnly()
}

// replacedCAs is complete when everything that is in use is signed by the present
// CAs, and nothing is published that is to be retired. It adds to a verdict that is done.
func (s *Stage) replacedCAs(ctx context.Context, found verdict.Verdict) verdict.Verdict {
	renewed := trust.Reissue(ctx, s.Objects, s.Authorities.ServingLeaves(s.Registry.Spec.Mode))
	shown, err := s.SecretValue(ctx, s.Registry.Name+contract.ServingSuffix, corev1.TLSCertKey)
	if err != nil {
		return verdict.Failed(err)
	}
	serving := s.Authorities.Serving
	signed := trust.SignedBy(shown, serving.Current)
	switch retires := serving.Retirable() && signed; {
	case s.ReadOnly() && serving.Replaced() && !serving.Announced() && (renewed.Complete() || renewed.Reason == operatorv1alpha1.ReasonCAReplaced):
		return s.unpublished(signed)
	case !renewed.Complete():
		return renewed.DegradedIf(true)
	case s.ReadOnly() && retires:
		return verdict.Waiting(operatorv1alpha1.ReasonCAReplaced, "the CA in %s has replaced another one; both are published until %s", serving.Source, s.ReadOnlyUntil()).In(verdict.Vigil).DegradedIf(true)
	case retires:
		return verdict.Waiting(operatorv1alpha1.ReasonCAReplaced, "the CA in %s has replaced another one; both are published until every server shows the certificate that it signed, which takes up to two minutes", serving.Source).In(verdict.Soon).DegradedIf(true)
	case serving.Replaced() && !signed:
		return found.Note(operatorv1alpha1.ReasonCAReplaced, fmt.Sprintf("the CA in %s has replaced another one, which signed the servers' certificate: give clients the kubeconfig in Secret %s%s again, which trusts both, before Certificate %s%s is renewed (status.certificates)", serving.Source, s.Registry.Name, contract.KubeconfigSuffix, s.Registry.Name, contract.ServingSuffix))
	case s.Authorities.Clients.Retirable():
		return found.Note(operatorv1alpha1.ReasonCAReplaced, fmt.Sprintf("the CA in %s has replaced another one; client certificates of both are accepted (status.clientCABundle)", s.Authorities.Clients.Source))
	}
	return found
}

// unpublished is the verdict on a CA of the servers that has replaced another one, while nothing may
// be published: whether it has signed their certificate by now.
func (s *Stage) unpublished(signed bool) verdict.Verdict {
	by, once := "clients", fmt.Sprintf("Certificate %s%s is renewed (status.certificates)", s.Registry.Name, contract.ServingSuffix)
	if s.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
		by = "kube-apiserver"
	}
	if signed {
		once = "they present the certificate that it has signed, for which their nodes take up to two minutes"
	}
	return verdict.Waiting(operatorv1alpha1.ReasonCAReplaced, "the CA in %s has replaced another one, and is not published until %s: the servers are no longer trusted by %s once %s", s.Authorities.Serving.Source, s.ReadOnlyUntil(), by, once).In(verdict.Vigil).DegradedIf(true)
}

// expiryNoted returns a verdict with a note if the Certificate is of a CA that expires
// soon, or has a shorter lifetime than was asked for.
func (s *Stage) expiryNoted(v verdict.Verdict, c *certmanagerv1.Certificate) verdict.Verdict {
	if problem := diagnose.ShortLived(c); problem != "" {
		return v.Note(operatorv1alpha1.ReasonShortLifetime, problem)
	}
	if problem := diagnose.ExpiringCA(c, s.Now); problem != "" {
		return v.Note(operatorv1alpha1.ReasonCAExpiring, problem)
	}
	return v
}
