package clusterregistry

import (
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestExpiryNoted is about a condition that stays true and warns.
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
		s := look(t, "{spec: {mode: Aggregated}}")
		c := &certmanagerv1.Certificate{Spec: certmanagerv1.CertificateSpec{IsCA: true}}
		ends := s.now.Add(test.left)
		c.Name, c.Status.NotAfter = "fleet-etcd-ca", timeAt(ends)
		s.record(operatorv1alpha1.ConditionCertificatesReady, s.expiryNoted(done, c))
		got := s.condition(operatorv1alpha1.ConditionCertificatesReady, "")
		if warns := got.Reason == operatorv1alpha1.ReasonCAExpiring; warns != test.warns || got.Status != "True" || warns != strings.Contains(got.Message, "the CA fleet-etcd-ca expires on "+ends.Format(time.DateOnly)+"; cert-manager renews it") {
			t.Errorf("%s: %+v", test.reason, got)
		}
	}
}
