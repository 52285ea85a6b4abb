package certificates

import (
	"bytes"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/issuance"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
	"github.com/clusterregistry/operator/operator/verdict"
)

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// stageOf returns the stage of a registry of which no CA is known.
func stageOf(o *operand.Objects) *Stage {
	return &Stage{Objects: o, CertManager: &issuance.CertManager{}, Authorities: &trust.Authorities{}}
}

// TestExpiryNoted is about a stage that is done and warns.
func TestExpiryNoted(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		reason string
		left   time.Duration
		warns  bool
	}{
		{"a year and a day", 366 * day, false},
		{"less than a year", 364 * day, true},
	} {
		s := stageOf(operandtest.New(t, "{spec: {mode: Aggregated}}"))
		ends := s.Now.Add(test.left)
		c := &certmanagerv1.Certificate{Spec: certmanagerv1.CertificateSpec{IsCA: true}, Status: certmanagerv1.CertificateStatus{NotAfter: new(metav1.NewTime(ends))}}
		c.Name = "fleet-etcd-ca"
		got := s.expiryNoted(done, c)
		if warns := got.Reason == operatorv1alpha1.ReasonCAExpiring; warns != test.warns || !got.Complete() || warns != strings.Contains(got.Message, "the CA fleet-etcd-ca expires on "+ends.Format(time.DateOnly)+"; cert-manager renews it") {
			t.Errorf("%s: %+v", test.reason, got)
		}
	}
}

// TestShortLifetimeNoted is about a stage that is done, and whose issuer gives less than was asked for.
func TestShortLifetimeNoted(t *testing.T) {
	s := stageOf(operandtest.New(t, "{spec: {mode: Independent}}"))
	c := &certmanagerv1.Certificate{Spec: certmanagerv1.CertificateSpec{Duration: &metav1.Duration{Duration: 90 * time.Hour}}}
	c.Name, c.Status.NotBefore, c.Status.NotAfter = "fleet-serving", new(metav1.NewTime(s.Now)), new(metav1.NewTime(s.Now.Add(30*time.Hour)))
	c.Status.Conditions = []certmanagerv1.CertificateCondition{{Type: certmanagerv1.CertificateConditionReady, Status: "True"}}
	if v := s.expiryNoted(done, c); !v.Complete() || v.Reason != operatorv1alpha1.ReasonShortLifetime || !strings.Contains(v.Message, "fleet-serving a lifetime of 30h0m0s") {
		t.Errorf("%+v", v)
	}
}

// TestMissingCA holds everything of an installed registry while a CA is missing.
func TestMissingCA(t *testing.T) {
	s := stageOf(operandtest.New(t, operandtest.InstalledAggregated))
	s.Authorities.Serving, s.Authorities.Etcd = trust.Authority{Source: "Secret fleet-serving-ca"}, trust.Authority{Source: "Secret fleet-etcd-ca", Current: []byte("x")}
	v := s.withCAs(verdict.Waiting(operatorv1alpha1.ReasonCertificateNotReady, "Certificate fleet-serving-ca is not issued yet"))
	if v.State != verdict.ReadOnly || v.Reason != operatorv1alpha1.ReasonCAMissing || !strings.Contains(v.Message, "Secret fleet-serving-ca") || !strings.Contains(v.Message, "is not issued yet") {
		t.Errorf("%+v", v)
	}
	s.Authorities.Serving.Current = []byte("x")
	if v := s.withCAs(verdict.Waiting("R", "m")); v.State == verdict.ReadOnly || v.Reason != "R" {
		t.Errorf("no CA is missing: %+v", v)
	}
}

// TestIssuable leaves the servers' certificate as it is while it is not known which
// CA will sign it, as when spec.tls.issuerRef was removed and there is no CA of the
// registry's own yet.
func TestIssuable(t *testing.T) {
	ca := trusttest.NewCA(t, time.Now().Add(time.Hour)).PEM
	object := func(kind, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetKind(kind)
		o.SetName(name)
		return o
	}
	for _, test := range []struct {
		reason             string
		current, published []byte
		want               int
	}{
		{"a first installation", nil, nil, 3},
		{"all is as it was", ca, ca, 3},
		{"the CA is not known", nil, ca, 2},
	} {
		s := stageOf(operandtest.New(t, operandtest.InstalledAggregated))
		s.Authorities.Serving = trust.Authority{Current: test.current, Published: test.published}
		s.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageCertificates: {
			object("Issuer", "fleet-serving"), object("Certificate", "fleet-serving-ca"), object("Certificate", "fleet-serving")}}
		if got := s.issuable(); len(got) != test.want || len(s.Rendered.Stages[render.StageCertificates]) != 3 {
			t.Errorf("%s: %d objects", test.reason, len(got))
		}
	}
}

// TestCAMismatch reports an issuer that is not the one that spec.tls.caBundle belongs to,
// although its servers are trusted.
func TestCAMismatch(t *testing.T) {
	later := time.Now().Add(time.Hour)
	wrong, issuer, old := trusttest.NewCA(t, later), trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	secret := operandtest.Secret("fleet-serving", issuer.Leaf())
	secret.Data[operand.CAKey] = issuer.PEM
	s := stageOf(operandtest.New(t, operandtest.InstalledAggregated, secret, operandtest.Secret("fleet-etcd-ca", old.PEM), operandtest.APIService("fleet", old.PEM)))
	s.Registry.Spec.TLS.IssuerRef, s.Registry.Spec.TLS.CABundle = &operatorv1alpha1.IssuerReference{Name: "corporate"}, wrong.PEM
	var err error
	if s.Authorities, err = trust.Read(t.Context(), s.Objects, generation.InUse{Signing: 1}, trust.Copy{}); err != nil {
		t.Fatal(err)
	}
	if want := join(wrong.PEM, old.PEM, issuer.PEM); string(s.Authorities.Serving.Bundle()) != string(want) {
		t.Errorf("published is\n%s", s.Authorities.Serving.Bundle())
	}
	if v := s.replacedCAs(t.Context(), done); v.Complete() || v.Reason != operatorv1alpha1.ReasonCAMismatch || !strings.Contains(v.Message, "set spec.tls.caBundle") {
		t.Errorf("the mistake is not reported: %+v", v)
	}
}

// TestReplacedWhileReadOnly is about a CA that was replaced while nothing may be published: it says
// from when on the servers are not trusted.
func TestReplacedWhileReadOnly(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	const renewal, delivery = "once Certificate fleet-serving is renewed (status.certificates)", "once they present the certificate that it has signed"
	for _, test := range []struct {
		reason    string
		mode      operatorv1alpha1.Mode
		shown     []byte
		published []byte
		says      string
	}{
		{"its certificate is there", operatorv1alpha1.ModeAggregated, now.Leaf(), old.PEM, "is not published until spec.paused is false: the servers are no longer trusted by kube-apiserver " + delivery},
		{"that of before is", operatorv1alpha1.ModeAggregated, old.Leaf(), old.PEM, "trusted by kube-apiserver " + renewal},
		{"its certificate is there, and clients have no other CA", operatorv1alpha1.ModeIndependent, now.Leaf(), old.PEM, "trusted by clients " + delivery},
		{"that of before is, for clients", operatorv1alpha1.ModeIndependent, old.Leaf(), old.PEM, "trusted by clients " + renewal},
		{"both are published", operatorv1alpha1.ModeAggregated, now.Leaf(), join(old.PEM, now.PEM), "both are published until spec.paused is false"},
		{"both are, and the certificate is that of before", operatorv1alpha1.ModeAggregated, old.Leaf(), join(old.PEM, now.PEM), "the operator asks cert-manager to issue it again when spec.paused is false"},
	} {
		s := stageOf(operandtest.New(t, operandtest.InstalledAggregated, operandtest.Secret("fleet-serving", test.shown), operandtest.Secret("fleet-admin", now.Leaf())))
		s.Registry.Spec.Mode = test.mode
		s.Authorities.Serving = trust.Authority{Source: "Secret fleet-serving-ca", Current: now.PEM, Published: test.published}
		s.Authorities.Clients = trust.Authority{Source: "Secret fleet-client-ca", Current: now.PEM}
		s.Freeze("spec.paused is false")
		v := s.replacedCAs(t.Context(), done)
		if v.Complete() || v.Reason != operatorv1alpha1.ReasonCAReplaced || v.State != verdict.Degraded || v.After <= verdict.Soon || !strings.Contains(v.Message, test.says) {
			t.Errorf("%s: %+v", test.reason, v)
		}
	}
}
