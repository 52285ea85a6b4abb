package trust_test

import (
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestReissueOnce lets a certificate be that was issued since its Secret was read.
func TestReissueOnce(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	certificate := &certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-serving"}}
	secret := operandtest.Secret("fleet-serving", old.Leaf())
	o := operandtest.New(t, operandtest.InstalledAggregated, certificate, secret)
	o.Secrets = &operand.Secrets{}
	if _, err := o.Secret(t.Context(), "fleet-serving"); err != nil {
		t.Fatal(err)
	}
	issued := operandtest.Secret("fleet-serving", now.Leaf())
	if err := o.Client.Update(t.Context(), issued); err != nil {
		t.Fatal(err)
	}
	if v := trust.Reissue(t.Context(), o, []trust.Leaf{{Suffix: "-serving", Trusted: now.PEM, Source: "Secret fleet-serving-ca"}}); !v.Complete() {
		t.Errorf("%+v", v)
	}
}

// TestReissue is about a certificate that the present CA did not sign: cert-manager
// is asked for another one. A read-only reconcile asks nobody, says so, and waits for what
// ends it.
func TestReissue(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	for _, test := range []struct {
		reason string
		// until is what ends that nothing may be changed, empty when changes may be made.
		until string
		asked bool
		says  string
	}{
		{"nothing is against it", "", true, "which was replaced; waiting for cert-manager to issue it again"},
		{"paused", "spec.paused is false", false, "nothing is changed now, and the operator asks cert-manager to issue it again when spec.paused is false"},
		{"an earlier stage forbids it", "this is resolved: EtcdReady: the data is gone", false, "asks cert-manager to issue it again when this is resolved: EtcdReady: the data is gone"},
	} {
		certificate := &certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-serving"}}
		o := operandtest.New(t, operandtest.InstalledAggregated, certificate, operandtest.Secret("fleet-serving", old.Leaf()))
		if test.until != "" {
			o.Freeze(test.until)
		}
		v := trust.Reissue(t.Context(), o, []trust.Leaf{{Suffix: "-serving", Trusted: now.PEM, Source: "Secret fleet-serving-ca"}})
		if v.Complete() || v.Err != nil || v.Reason != operatorv1alpha1.ReasonCAReplaced || !strings.Contains(v.Message, test.says) || (v.After > verdict.Soon) == test.asked {
			t.Errorf("%s: %+v", test.reason, v)
		}
		if err := o.Live.Get(t.Context(), client.ObjectKeyFromObject(certificate), certificate); err != nil {
			t.Fatal(err)
		}
		asked := len(certificate.Status.Conditions) > 0 && certificate.Status.Conditions[0].Status == cmmetav1.ConditionTrue
		if asked != test.asked {
			t.Errorf("%s: cert-manager is asked: %t", test.reason, asked)
		}
	}
}
