package clusterregistry

import (
	"context"
	"crypto/x509"
	"encoding/pem"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// reissue has certificates of etcd issued anew that another CA signed than the one
// that was recorded, as while its Secret held a foreign one: cert-manager lets
// them be. To be called when the CA is known to be the right one.
func (r *Reconciler) reissue(ctx context.Context, s *scope) *hold {
	for _, suffix := range []string{"-etcd-server", "-etcd-peer", "-etcd-client"} {
		reference := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: s.registry.Namespace, Name: s.registry.Name + suffix}
		secret, err := r.secret(ctx, reference.Namespace, reference.Name)
		if err != nil {
			return failed(err)
		}
		if secret == nil || signedBy(secret.Data[corev1.TLSCertKey], s.trust.Etcd) {
			continue
		}
		if !s.frozen {
			if _, err := r.Applier.Delete(ctx, reference, s.owner()); err != nil {
				return failed(err)
			}
		}
		return waitFor(operatorv1alpha1.ReasonWaiting, "%s holds a certificate that the CA in Secret %s-etcd-ca did not sign, and waits for cert-manager to issue it anew", reference, s.registry.Name).in(soon)
	}
	return nil
}

// signedBy reports whether a CA has signed a certificate, both in PEM. What can't
// be read counts as signed, since that is for others to tell.
func signedBy(leaf, ca []byte) bool {
	certificate, authority := firstCertificate(leaf), firstCertificate(ca)
	return certificate == nil || authority == nil || certificate.CheckSignatureFrom(authority) == nil
}

// firstCertificate returns the first certificate in PEM, nil when it is none.
func firstCertificate(content []byte) *x509.Certificate {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return certificate
}
