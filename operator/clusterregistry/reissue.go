package clusterregistry

import (
	"context"
	"fmt"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/verdict"
)

// reissueRetry is how long a request to issue a certificate again is left to
// cert-manager before it is made again.
const reissueRetry = 5 * time.Minute

// triggered is the reason by which cert-manager knows that someone asked for it.
const triggered = "ManuallyTriggered"

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
		return []leaf{{contract.ServingSuffix, s.trust.Serving, s.servingCA.source}, {contract.AdminSuffix, s.trust.Clients, s.clientCA.source}}
	}
	return []leaf{{contract.ServingSuffix, s.servingCA.current, s.servingCA.source}}
}

// reissue has cert-manager issue certificates again that the present CA did not
// sign, as after its Secret was deleted: cert-manager lets them be until they are
// renewed. It waits for the first of them.
func (r *Reconciler) reissue(ctx context.Context, s *scope, leaves []leaf) verdict.Verdict {
	for _, leaf := range leaves {
		name := s.registry.Name + leaf.suffix
		content, err := r.secretValue(ctx, s.registry.Namespace, name, corev1.TLSCertKey)
		if err != nil {
			return failed(err)
		}
		if signedBy(content, leaf.trusted) {
			continue
		}
		if leaf.suffix == contract.ServingSuffix && s.registry.Spec.TLS.IssuerRef != nil {
			return verdict.Waiting(operatorv1alpha1.ReasonCAMismatch, "the certificate in Secret %s, from the issuer in spec.tls.issuerRef, is not signed by a CA in spec.tls.caBundle: set spec.tls.caBundle to the CA certificates of that issuer", name)
		}
		if s.readOnly {
			return verdict.Waiting(operatorv1alpha1.ReasonCAReplaced, "the certificate in Secret %s is not signed by the CA in %s, which was replaced; nothing is changed now, and the operator asks cert-manager to issue it again when %s", name, leaf.source, s.frozenUntil()).In(vigil)
		}
		if err := r.renew(ctx, s, name); err != nil {
			return failed(err)
		}
		return verdict.Waiting(operatorv1alpha1.ReasonCAReplaced, "the certificate in Secret %s is not signed by the CA in %s, which was replaced; waiting for cert-manager to issue it again", name, leaf.source).In(soon)
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
	if !requestIssuance(certificate, s.now) {
		return nil
	}
	if err := r.writer(s).PatchStatus(ctx, before, certificate); err != nil {
		return fmt.Errorf("ask cert-manager to issue Certificate %s again: %w", name, err)
	}
	return nil
}

// requestIssuance sets the condition that has cert-manager issue a certificate
// (cmctl renew sets it, too). It returns false where that is under way, or was
// asked for a short while ago.
func requestIssuance(c *certmanagerv1.Certificate, now time.Time) bool {
	request := certmanagerv1.CertificateCondition{Type: certmanagerv1.CertificateConditionIssuing, Status: cmmetav1.ConditionTrue,
		Reason: triggered, Message: "The CA of the issuer was replaced", ObservedGeneration: c.Generation, LastTransitionTime: new(metav1.NewTime(now))}
	for i, condition := range c.Status.Conditions {
		if condition.Type != request.Type {
			continue
		}
		if condition.Status == request.Status || condition.LastTransitionTime != nil && now.Sub(condition.LastTransitionTime.Time) < reissueRetry {
			return false
		}
		c.Status.Conditions[i] = request
		return true
	}
	c.Status.Conditions = append(c.Status.Conditions, request)
	return true
}
