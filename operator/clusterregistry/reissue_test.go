package clusterregistry

import (
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestReissue is about a certificate that the present CA did not sign: cert-manager
// is asked for another one. A read-only pass asks nobody, says so, and waits for what
// ends it.
func TestReissue(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	for _, test := range []struct {
		reason string
		change func(*scope)
		asked  bool
		says   string
	}{
		{"nothing is against it", func(*scope) {}, true, "which was replaced; waiting for cert-manager to issue it again"},
		{"paused", func(s *scope) { s.registry.Spec.Paused, s.readOnly = true, true }, false, "nothing is changed now, and the operator asks cert-manager to issue it again when spec.paused is false"},
		{"an earlier stage forbids it", func(s *scope) {
			s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Waiting("R", "the data is gone").AsReadOnly())
		}, false, "asks cert-manager to issue it again when this is resolved: EtcdReady: the data is gone"},
	} {
		s := look(t, installedAggregated)
		test.change(s)
		certificate := &certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-serving"}}
		r := reading(t, certificate, secretOf("fleet-serving", old.Leaf()))
		v := r.reissue(t.Context(), s, []leaf{{"-serving", now.PEM, "Secret fleet-serving-ca"}})
		if v.Complete() || v.Err != nil || v.Reason != operatorv1alpha1.ReasonCAReplaced || !strings.Contains(v.Message, test.says) || (v.After > verdict.Soon) == test.asked {
			t.Errorf("%s: %+v", test.reason, v)
		}
		if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(certificate), certificate); err != nil {
			t.Fatal(err)
		}
		asked := len(certificate.Status.Conditions) > 0 && certificate.Status.Conditions[0].Status == cmmetav1.ConditionTrue
		if asked != test.asked {
			t.Errorf("%s: cert-manager is asked: %t", test.reason, asked)
		}
	}
}

// TestReplacedWhileReadOnly is about a CA that was replaced, and whose certificate of
// the servers is there already, while nothing may be published.
func TestReplacedWhileReadOnly(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	s := look(t, installedAggregated)
	s.servingCA = trust.Authority{Source: "Secret fleet-serving-ca", Current: now.PEM, Published: old.PEM}
	s.registry.Spec.Paused, s.readOnly = true, true
	v := reading(t, secretOf("fleet-serving", now.Leaf())).replacedCAs(t.Context(), s, done)
	if v.Complete() || v.Reason != operatorv1alpha1.ReasonCAReplaced || v.State != verdict.Degraded || v.After <= verdict.Soon || !strings.Contains(v.Message, "what is published stays as it is until spec.paused is false") {
		t.Errorf("%+v", v)
	}
}
