package trust_test

import (
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
)

func TestSignedBy(t *testing.T) {
	later := time.Now().Add(time.Hour)
	a, b := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	intermediate := a.Intermediate(later)
	for _, test := range []struct {
		reason       string
		leaf, bundle []byte
		want         bool
	}{
		{"its own CA", a.Leaf(), a.PEM, true},
		{"one of two", a.Leaf(), join(b.PEM, a.PEM), true},
		{"another CA of the same name", a.Leaf(), b.PEM, false},
		{"through an intermediate CA", join(intermediate.Leaf(), intermediate.PEM), a.PEM, true},
		{"a chain that ends elsewhere", join(intermediate.Leaf(), intermediate.PEM), b.PEM, false},
		{"what is no certificate is for others to report", []byte("nonsense"), a.PEM, true},
		{"and so is a missing CA", a.Leaf(), nil, true},
	} {
		if got := trust.SignedBy(test.leaf, test.bundle); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
	}
}

// TestRequestIssuance asks cert-manager once, and again only after a while.
func TestRequestIssuance(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		reason, conditions string
		want               bool
	}{
		{"nothing was asked", `[{type: Ready, status: "True"}]`, true},
		{"it is being issued", `[{type: Issuing, status: "True"}]`, false},
		{"it failed just now", `[{type: Issuing, status: "False", lastTransitionTime: "` + now.Add(-time.Minute).UTC().Format(time.RFC3339) + `"}]`, false},
		{"it failed long ago", `[{type: Issuing, status: "False", lastTransitionTime: "` + now.Add(-time.Hour).UTC().Format(time.RFC3339) + `"}]`, true},
	} {
		c := &certmanagerv1.Certificate{}
		if err := yaml.UnmarshalStrict([]byte(`{status: {conditions: `+test.conditions+`}}`), c); err != nil {
			t.Fatal(err)
		}
		before := len(c.Status.Conditions)
		if got := trust.RequestIssuance(c, now); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
		issuing := 0
		for _, condition := range c.Status.Conditions {
			if condition.Type == certmanagerv1.CertificateConditionIssuing && condition.Status == "True" && condition.Reason == "ManuallyTriggered" {
				issuing++
			}
		}
		if test.want != (issuing == 1) || len(c.Status.Conditions) < before {
			t.Errorf("%s: %+v", test.reason, c.Status.Conditions)
		}
	}
}
