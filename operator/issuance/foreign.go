package issuance

import (
	"cmp"
	"context"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Permitted is blocked when a rendered Certificate that does not exist yet would be
// given a Secret that is someone else's: cert-manager would overwrite what is in it
// and give it the registry's labels, by which it is deleted with the registry. Objects of
// other kinds don't count.
func Permitted(ctx context.Context, o *operand.Objects, rendered ...*unstructured.Unstructured) verdict.Verdict {
	for _, object := range rendered {
		if o.ReadOnly() || object.GetKind() != certmanagerv1.CertificateKind {
			continue
		}
		err := o.Client.Get(ctx, client.ObjectKeyFromObject(object), &certmanagerv1.Certificate{})
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return verdict.Failed(err)
		}
		name, _, _ := unstructured.NestedString(object.Object, "spec", "secretName")
		secret, err := o.SecretNow(ctx, name) // it may have come since, and would be lost
		if err != nil {
			return verdict.Failed(err)
		}
		issuer, _, _ := unstructured.NestedStringMap(object.Object, "spec", "issuerRef")
		if secret != nil && !For(secret, object.GetName(), issuer["name"], cmp.Or(issuer["kind"], certmanagerv1.IssuerKind), o.Owner()) {
			return verdict.Failed(&apply.NotOurs{Object: operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: secret.Namespace, Name: secret.Name}, Owner: apply.Owner(secret)})
		}
	}
	return verdict.Verdict{}
}

// For reports whether a Secret is that of one of the registry's Certificates, by its name and
// that of its issuer: the labels say so that cert-manager gives it, or, when they are lost, the
// names of the Certificate and of its issuer that cert-manager notes in it. Another
// owner's Certificate may have had that name.
func For(secret *corev1.Secret, certificate, issuer, issuerKind, owner string) bool {
	if named := apply.Owner(secret); named != "" {
		return named == owner
	}
	noted := secret.Annotations
	return noted[certmanagerv1.CertificateNameKey] == certificate && noted[certmanagerv1.IssuerNameAnnotationKey] == issuer &&
		noted[certmanagerv1.IssuerKindAnnotationKey] == issuerKind
}
