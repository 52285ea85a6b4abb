// Package issuance has cert-manager issue certificates of a registry: whether it is
// installed, whether it may write the Secret of a certificate, and how far each is.
package issuance

import (
	"context"
	"fmt"
	"slices"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/operand"
)

// Observe returns a rendered Certificate as it is in the host cluster, with an empty name
// where there is none, and why it is not issued as it is rendered; no problem when it is.
// It enters it in status.certificates.
func Observe(ctx context.Context, o *operand.Objects, desired *unstructured.Unstructured) (certificate *certmanagerv1.Certificate, problem string, err error) {
	certificate = &certmanagerv1.Certificate{}
	if err := o.Client.Get(ctx, client.ObjectKeyFromObject(desired), certificate); client.IgnoreNotFound(err) != nil {
		return nil, "", err
	}
	if certificate.Name == "" {
		return certificate, fmt.Sprintf("Certificate %s does not exist yet", desired.GetName()), nil
	}
	enter(o.Registry, operatorv1alpha1.CertificateStatus{Name: certificate.Name, NotAfter: certificate.Status.NotAfter, RenewalTime: certificate.Status.RenewalTime})
	problem = diagnose.Certificate(certificate)
	if o.Applier.Behind(desired, certificate) {
		// Its status is about what was desired before.
		problem = fmt.Sprintf("Certificate %s was changed just now", certificate.Name)
	}
	if problem == "" {
		return certificate, "", nil
	}
	if why := o.Diagnoser().CertificateRequest(ctx, certificate); why != "" {
		problem += " (" + why + ")"
	}
	return certificate, problem, nil
}

// enter has a certificate in the status once.
func enter(registry *operatorv1alpha1.ClusterRegistry, found operatorv1alpha1.CertificateStatus) {
	certificates := slices.DeleteFunc(slices.Clone(registry.Status.Certificates), func(c operatorv1alpha1.CertificateStatus) bool { return c.Name == found.Name })
	certificates = append(certificates, found)
	registry.Status.Certificates = certificates
}
