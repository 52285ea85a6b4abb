package accidents

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// issuers switches to another issuer of the servers' certificates, and back.
func (s *site) issuers(t *testing.T) {
	ca := s.corporate
	s.e.Create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "corporate"}, Type: corev1.SecretTypeTLS, Data: ca.Secret()},
		&certmanagerv1.Issuer{ObjectMeta: metav1.ObjectMeta{Name: "corporate"}, Spec: certmanagerv1.IssuerSpec{IssuerConfig: certmanagerv1.IssuerConfig{CA: &certmanagerv1.CAIssuer{SecretName: "corporate"}}}},
	)
	own := s.registry.Spec.TLS
	other := *own.DeepCopy()
	other.IssuerRef, other.CABundle = &operatorv1alpha1.IssuerReference{Name: "corporate"}, ca.PEM
	for _, change := range []struct {
		name string
		to   operatorv1alpha1.TLS
	}{{"issuerRef to another issuer", other}, {"issuerRef back to none", own}} {
		serving := client.ObjectKey{Namespace: s.registry.Namespace, Name: s.registry.Name + "-serving"}
		s.happens(t, accident{
			name: change.name, damage: "issuer switched",
			object: operatorv1alpha1.ObjectReference{Kind: "ClusterRegistry", Namespace: s.registry.Namespace, Name: s.registry.Name},
			cause: func(context.Context) error {
				s.e.Change(s.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.TLS = change.to })
				return nil
			},
			mended: func(ctx context.Context) error {
				var secret corev1.Secret
				if err := s.e.Client.Get(ctx, serving, &secret); err != nil {
					return err
				}
				if is, want := signedBy(secret.Data[corev1.TLSCertKey], ca.PEM), change.to.IssuerRef != nil; is != want {
					return fmt.Errorf("the serving certificate is signed by the other issuer: %t, want %t", is, want)
				}
				return nil
			},
			repair: func(context.Context) error { return errors.New("nothing that a condition asks for helps here") },
		})
	}
}

// signedBy reports whether a CA signed a certificate, both in PEM.
func signedBy(leaf, ca []byte) bool {
	parse := func(content []byte) *x509.Certificate {
		block, _ := pem.Decode(bytes.TrimSpace(content))
		if block == nil {
			return nil
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		return certificate
	}
	l, a := parse(leaf), parse(ca)
	return l != nil && a != nil && l.CheckSignatureFrom(a) == nil
}
