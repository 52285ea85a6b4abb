package clusterregistry

import (
	"context"
	"fmt"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// leaf is a certificate, in the Secret with that suffix, that must be signed by a
// CA of a bundle.
type leaf struct {
	suffix  string
	trusted []byte
	// source is where that CA is, for a person.
	source string
}

// etcdLeaves are the certificates of etcd, which only trusts its CA.
func (s *scope) etcdLeaves() []leaf {
	source := "Secret " + s.registry.Name + contract.EtcdCASuffix
	return []leaf{{contract.EtcdServerSuffix, s.trust.Etcd, source}, {contract.EtcdPeerSuffix, s.trust.Etcd, source}, {contract.EtcdClientSuffix, s.trust.Etcd, source}}
}

// servingLeaves are the certificates of the servers and of the administrator.
// The host follows a CA that was replaced at once. Other clients keep copies of
// the previous one, so their servers' certificate stays until it is renewed anyway.
func (s *scope) servingLeaves() []leaf {
	if s.registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		return []leaf{{contract.ServingSuffix, s.trust.Serving, s.servingCA.Source}, {contract.AdminSuffix, s.trust.Clients, s.clientCA.Source}}
	}
	return []leaf{{contract.ServingSuffix, s.servingCA.Current, s.servingCA.Source}}
}

// reissue has cert-manager issue certificates again that the present CA did not
// sign, as after its Secret was deleted: cert-manager lets them be until they are
// renewed. It waits for the first of them.
func (r *Reconciler) reissue(ctx context.Context, s *scope, leaves []leaf) verdict.Verdict {
	for _, leaf := range leaves {
		name := s.registry.Name + leaf.suffix
		content, err := r.secretValue(ctx, s.registry.Namespace, name, corev1.TLSCertKey)
		if err != nil {
			return verdict.Failed(err)
		}
		if trust.SignedBy(content, leaf.trusted) {
			continue
		}
		if leaf.suffix == contract.ServingSuffix && s.registry.Spec.TLS.IssuerRef != nil {
			return verdict.Waiting(operatorv1alpha1.ReasonCAMismatch, "the certificate in Secret %s, from the issuer in spec.tls.issuerRef, is not signed by a CA in spec.tls.caBundle: set spec.tls.caBundle to the CA certificates of that issuer", name)
		}
		if s.readOnly {
			return verdict.Waiting(operatorv1alpha1.ReasonCAReplaced, "the certificate in Secret %s is not signed by the CA in %s, which was replaced; nothing is changed now, and the operator asks cert-manager to issue it again when %s", name, leaf.source, s.frozenUntil()).In(vigil)
		}
		if err := r.renew(ctx, s, name); err != nil {
			return verdict.Failed(err)
		}
		return verdict.Waiting(operatorv1alpha1.ReasonCAReplaced, "the certificate in Secret %s is not signed by the CA in %s, which was replaced; waiting for cert-manager to issue it again", name, leaf.source).In(verdict.Soon)
	}
	return done
}

// renew asks cert-manager to issue a certificate again, as "cmctl renew" does. The
// Secret stays as it is until then.
func (r *Reconciler) renew(ctx context.Context, s *scope, name string) error {
	certificate := &certmanagerv1.Certificate{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.registry.Namespace, Name: name}, certificate); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := certificate.DeepCopy()
	if !trust.RequestIssuance(certificate, s.now) {
		return nil
	}
	if err := r.writer(s).PatchStatus(ctx, before, certificate); err != nil {
		return fmt.Errorf("ask cert-manager to issue Certificate %s again: %w", name, err)
	}
	return nil
}
