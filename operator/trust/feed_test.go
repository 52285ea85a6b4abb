package trust_test

import (
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
)

// TestFeedShows waits for the certificate that the controller shows to those who ask its feed, as long
// as there is one.
func TestFeedShows(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	issued := trust.Parse(now.Leaf())[0].NotBefore
	on := &operatorv1alpha1.Controllers{Feed: &operatorv1alpha1.Feed{}}
	for _, test := range []struct {
		reason      string
		controllers *operatorv1alpha1.Controllers
		mode        operatorv1alpha1.Mode
		secret      []byte
		age         time.Duration
		waits       string
		foreign     bool
	}{
		{"it was issued a while ago", on, operatorv1alpha1.ModeAggregated, now.Leaf(), 3 * time.Minute, "", false},
		{"it was issued just now", on, operatorv1alpha1.ModeAggregated, now.Leaf(), 2 * time.Minute, "waiting until the controller shows the certificate in Secret fleet-controller", false},
		{"the previous CA has signed it", on, operatorv1alpha1.ModeAggregated, old.Leaf(), time.Hour, "waiting for cert-manager to issue Certificate fleet-controller by the CA in Secret fleet-serving-ca", false},
		{"there is none", on, operatorv1alpha1.ModeAggregated, nil, 0, "", false},
		{"no one is answered", &operatorv1alpha1.Controllers{}, operatorv1alpha1.ModeAggregated, old.Leaf(), 0, "", false},
		{"there is no controller", nil, operatorv1alpha1.ModeAggregated, old.Leaf(), 0, "", false},
		{"it is a client's certificate", on, operatorv1alpha1.ModeIndependent, old.Leaf(), 0, "", false},
		{"it is someone else's", on, operatorv1alpha1.ModeAggregated, old.Leaf(), time.Hour, "", true},
	} {
		secret := operandtest.Secret("fleet-controller", test.secret)
		if test.foreign {
			secret.Labels = nil
		}
		o := operandtest.New(t, operandtest.InstalledAggregated, secret)
		o.Registry.Spec.Controllers, o.Registry.Spec.Mode = test.controllers, test.mode
		o.Now = issued.Add(test.age)
		waits, err := trust.FeedShows(t.Context(), o, trust.Authority{Source: "Secret fleet-serving-ca", Current: now.PEM})
		if err != nil || !strings.Contains(waits, test.waits) || (waits == "") != (test.waits == "") {
			t.Errorf("%s: %q, %v", test.reason, waits, err)
		}
	}
}

// TestReissueOfAnIssuer expects the issuer of others not to be asked again and again for what it does not
// sign by the CA that clients are told.
func TestReissueOfAnIssuer(t *testing.T) {
	later := time.Now().Add(time.Hour)
	told, other := trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	for _, suffix := range []string{"-serving", "-controller"} {
		o := operandtest.New(t, operandtest.InstalledAggregated, operandtest.Secret("fleet"+suffix, other.Leaf()))
		o.Registry.Spec.TLS.IssuerRef = &operatorv1alpha1.IssuerReference{Name: "corporate"}
		authorities := trust.Authorities{Serving: trust.Authority{Current: told.PEM}}
		if v := trust.Reissue(t.Context(), o, []trust.Leaf{authorities.ServingLeaf(suffix)}); v.Reason != operatorv1alpha1.ReasonCAMismatch {
			t.Errorf("%s: %+v", suffix, v)
		}
	}
}
