package clusterregistry

import (
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

func TestCertificateProblem(t *testing.T) {
	for reason, test := range map[string]struct{ certificate, want string }{
		"cert-manager has said nothing": {`{}`, "Certificate c waits for cert-manager to look at it"},
		"it is issued":                  {`{status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`, ""},
		"it was, and has changed since": {`{status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, "Certificate c waits for cert-manager to look at it"},
		"it is under way":               {`{status: {conditions: [{type: Ready, status: "False", message: Issuing certificate as Secret does not exist}]}}`, "Certificate c is not issued yet: Issuing certificate as Secret does not exist"},
		"it failed": {`{status: {lastFailureTime: "2026-01-01T00:00:00Z", conditions: [{type: Ready, status: "False", message: no}, {type: Issuing, status: "False", message: "the issuer says no."}]}}`,
			"Certificate c is not issued: the issuer says no. cert-manager tries again an hour after 2026-01-01T00:00:00Z"},
	} {
		c := &certmanagerv1.Certificate{}
		if err := yaml.UnmarshalStrict([]byte(test.certificate), c); err != nil {
			t.Fatal(err)
		}
		c.Name, c.Generation = "c", 2
		if got := look(t, "{}").certificateProblem(c); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}

func TestCAWarning(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		reason string
		ca     bool
		left   time.Duration
		warns  bool
	}{
		{"ten years", true, 3650 * day, false},
		{"a year and a day", true, 366 * day, false},
		{"less than a year", true, 364 * day, true},
		{"it has ended", true, -day, true},
		{"leaves are renewed by themselves", false, day, false},
	} {
		s := look(t, "{spec: {mode: Aggregated}}")
		c := &certmanagerv1.Certificate{Spec: certmanagerv1.CertificateSpec{IsCA: test.ca}}
		ends := s.now.Add(test.left)
		c.Name, c.Status.NotAfter = "fleet-etcd-ca", timeAt(ends)
		v := done
		if expires := s.caExpires(c); expires != "" {
			v = v.Note(operatorv1alpha1.ReasonCAExpiring, expires)
		}
		s.record(operatorv1alpha1.ConditionCertificatesReady, v)
		got := s.condition(operatorv1alpha1.ConditionCertificatesReady, "")
		if warns := got.Reason == operatorv1alpha1.ReasonCAExpiring; warns != test.warns || got.Status != "True" || warns != strings.Contains(got.Message, "the CA fleet-etcd-ca expires on "+ends.Format(time.DateOnly)+"; cert-manager renews it") {
			t.Errorf("%s: %+v", test.reason, got)
		}
	}
}

func TestSeveral(t *testing.T) {
	if got := several([]string{"a", "b", "c"}); got != "a; b; c" {
		t.Error(got)
	}
	if got := several([]string{"a", "b", "c", "d", "e"}); got != "a; b; c; and 2 more" {
		t.Error(got)
	}
}
