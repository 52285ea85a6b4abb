package issuance

import (
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestPermitted is about Secrets that have the name of a Certificate's before
// there is one.
func TestPermitted(t *testing.T) {
	labels := func(name string) map[string]string {
		return map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: name}
	}
	secret := func(labels, annotations map[string]string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-serving", Labels: labels, Annotations: annotations}}
	}
	noted := func(certificate, issuer string) map[string]string {
		return map[string]string{certmanagerv1.CertificateNameKey: certificate, certmanagerv1.IssuerNameAnnotationKey: issuer, certmanagerv1.IssuerKindAnnotationKey: "Issuer"}
	}
	certificate := &certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-serving"}}
	for _, test := range []struct {
		reason  string
		objects []client.Object
		frozen  bool
		says    string
	}{
		{"there is none", nil, false, ""},
		{"somebody keeps a password in it", []client.Object{secret(nil, nil)}, false, "Secret team/fleet-serving is in the way: it was not made by the operator"},
		{"another Certificate's", []client.Object{secret(nil, noted("web", "fleet-serving"))}, false, "Secret team/fleet-serving is in the way"},
		{"another registry's", []client.Object{secret(labels("other"), nil)}, false, "belongs to ClusterRegistry team/other"},
		{"nothing is made now", []client.Object{secret(nil, nil)}, true, ""},
		{"the registry's own, from before the Certificate was deleted", []client.Object{secret(labels("fleet"), nil)}, false, ""},
		{"the registry's own, which lost its labels as well", []client.Object{secret(nil, noted("fleet-serving", "fleet-serving"))}, false, ""},
		{"somebody else's, of a Certificate of that name that was deleted", []client.Object{secret(nil, noted("fleet-serving", "corporate"))}, false, "Secret team/fleet-serving is in the way"},
		{"one that lost all that tells, while the Certificate is there", []client.Object{certificate, secret(nil, nil)}, false, ""},
	} {
		s := operandtest.New(t, "{spec: {mode: Independent}}", test.objects...)
		if test.frozen {
			s.Freeze("spec.paused is false")
		}
		wanted := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "spec": map[string]any{"secretName": "fleet-serving", "issuerRef": map[string]any{"name": "fleet-serving"}}}}
		wanted.SetNamespace("team")
		wanted.SetName("fleet-serving")
		v := Permitted(t.Context(), s, wanted)
		if (!v.Complete()) != (test.says != "") || !v.Complete() && (v.Reason != operatorv1alpha1.ReasonNotOwned || !strings.Contains(v.Message, test.says)) {
			t.Errorf("%s: %+v", test.reason, v)
		}
	}
}

// TestPermittedNow has someone make a Secret while a reconcile is under way which has seen that
// there was none.
func TestPermittedNow(t *testing.T) {
	o := operandtest.New(t, "{spec: {mode: Independent}}")
	o.Secrets = &operand.Secrets{}
	if secret, err := o.Secret(t.Context(), "fleet-serving"); secret != nil || err != nil {
		t.Fatalf("%v, %v", secret, err)
	}
	if err := o.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-serving"}}); err != nil {
		t.Fatal(err)
	}
	wanted := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "spec": map[string]any{"secretName": "fleet-serving"}}}
	wanted.SetNamespace("team")
	wanted.SetName("fleet-serving")
	if v := Permitted(t.Context(), o, wanted); v.Reason != operatorv1alpha1.ReasonNotOwned {
		t.Errorf("the Secret of someone else would be overwritten: %+v", v)
	}
}
