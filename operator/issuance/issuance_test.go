package issuance

import (
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestObserve says how far a Certificate is, and lists it once, however often it is
// observed.
func TestObserve(t *testing.T) {
	certificate := func(name string, ready cmmetav1.ConditionStatus) *certmanagerv1.Certificate {
		return &certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
			Status: certmanagerv1.CertificateStatus{Conditions: []certmanagerv1.CertificateCondition{{Type: certmanagerv1.CertificateConditionReady, Status: ready, Message: "not yet"}}}}
	}
	o := operandtest.New(t, "{spec: {mode: Independent}}", certificate("a", "True"), certificate("b", "False"))
	for range 2 {
		for name, want := range map[string]string{"a": "", "b": "Certificate b is not issued yet: not yet", "c": "Certificate c does not exist yet"} {
			found, problem, err := Observe(t.Context(), o, operandtest.Rendered(certmanagerv1.SchemeGroupVersion.WithKind(certmanagerv1.CertificateKind), name))
			if err != nil || problem != want || (found.Name == "") != (name == "c") {
				t.Errorf("%s: %q, %v", name, problem, err)
			}
		}
	}
	if listed := o.Registry.Status.Certificates; len(listed) != 2 {
		t.Errorf("the status has %v", listed)
	}
}
