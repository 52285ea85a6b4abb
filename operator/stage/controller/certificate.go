package controller

import (
	"context"
	"slices"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/issuance"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// certificate returns the Certificate by which the controller is a user of an independent
// registry, or which it shows to those who ask its feed in an aggregated one; nil for none.
func certificate(o *operand.Objects) *unstructured.Unstructured {
	objects := o.Rendered.Stages[render.StageController]
	if i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == certmanagerv1.CertificateKind }); i >= 0 {
		return objects[i]
	}
	return nil
}

// certified is done when the controller's certificate is issued as it is rendered, with
// the groups of all functions, and signed by the present CA. No one but the controller
// waits for it. While the servers come first, it is only observed, and issued again where
// its CA was replaced.
func (s *Stage) certified(ctx context.Context, serversFirst bool) verdict.Verdict {
	desired := certificate(s.Objects)
	if desired == nil {
		return done
	}
	installed, err := s.CertManager.Installed(ctx, s.Client)
	if err != nil {
		return verdict.Failed(err)
	}
	if !installed {
		return verdict.Waiting(operatorv1alpha1.ReasonCertManagerNotInstalled, "cert-manager, which issues the controller's certificate, is not installed in the host cluster")
	}
	if !serversFirst {
		if v := s.applyCertificate(ctx, desired); !v.Complete() {
			return v
		}
	}
	_, problem, err := issuance.Observe(ctx, s.Objects, desired)
	switch {
	case err != nil:
		return verdict.Failed(err)
	case problem != "" && s.ReadOnly():
		return verdict.Waiting(operatorv1alpha1.ReasonCertificateNotReady, "%s; nothing is changed until %s", problem, s.ReadOnlyUntil()).In(verdict.Vigil)
	case problem != "" && s.Registry.Spec.Mode != operatorv1alpha1.ModeIndependent:
		return verdict.Waiting(operatorv1alpha1.ReasonCertificateNotReady, "%s; feed answers no new connections until it is issued, and the other functions continue", problem)
	case problem != "":
		return verdict.Waiting(operatorv1alpha1.ReasonCertificateNotReady, "%s; no replica is made or replaced until it is issued", problem)
	}
	return trust.Reissue(ctx, s.Objects, []trust.Leaf{s.leaf()})
}

// applyCertificate applies the Certificate, unless its Secret is someone else's. The
// Secret, a credential, is the registry's before cert-manager makes it, so that it goes
// with the controller whenever that is.
func (s *Stage) applyCertificate(ctx context.Context, desired *unstructured.Unstructured) verdict.Verdict {
	if v := issuance.Permitted(ctx, s.Objects, desired); !v.Complete() {
		return v
	}
	secret := &unstructured.Unstructured{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	secret.SetNamespace(s.Registry.Namespace)
	secret.SetName(s.Name(contract.ControllerSuffix))
	// The Certificate comes first, also when both are deleted: else the Secret came back.
	if err := apply.IgnoreReadOnly(s.Enlist(ctx, desired, secret)); err != nil {
		return verdict.Failed(err)
	}
	if err := apply.IgnoreReadOnly(s.Apply(ctx, desired)); err != nil {
		return verdict.Failed(err)
	}
	return done
}

// leaf is the controller's certificate.
func (s *Stage) leaf() trust.Leaf {
	if s.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		return s.Authorities.ClientLeaf(contract.ControllerSuffix)
	}
	return s.Authorities.ServingLeaf(contract.ControllerSuffix)
}
