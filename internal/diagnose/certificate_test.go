package diagnose

import (
	"errors"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCertificate(t *testing.T) {
	for reason, test := range map[string]struct{ certificate, want string }{
		"cert-manager has said nothing": {`{}`, "Certificate c is waiting for cert-manager to process it"},
		"it is issued":                  {`{status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`, ""},
		"it was, and has changed since": {`{status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, "Certificate c is waiting for cert-manager to process it"},
		"it is issued after a failure":  {`{status: {lastFailureTime: "2026-01-01T00:00:00Z", conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`, ""},
		"it is under way":               {`{status: {conditions: [{type: Ready, status: "False", message: Issuing certificate as Secret does not exist}]}}`, "Certificate c is not issued yet: Issuing certificate as Secret does not exist"},
		"it failed": {`{status: {lastFailureTime: "2026-01-01T00:00:00Z", conditions: [{type: Ready, status: "False", message: no}, {type: Issuing, status: "False", message: "the issuer says no."}]}}`,
			"Certificate c is not issued: the issuer says no. cert-manager retries at 2026-01-01T01:00:00Z, or at once with: cmctl renew c"},
		"it failed four times": {`{status: {lastFailureTime: "2026-01-01T00:00:00Z", failedIssuanceAttempts: 4, conditions: [{type: Ready, status: "False", message: no}, {type: Issuing, status: "False", message: "the issuer says no."}]}}`,
			"Certificate c is not issued: the issuer says no. cert-manager retries at 2026-01-01T08:00:00Z, or at once with: cmctl renew c"},
		"it failed many times": {`{status: {lastFailureTime: "2026-01-01T00:00:00Z", failedIssuanceAttempts: 4000, conditions: [{type: Ready, status: "False", message: no}, {type: Issuing, status: "False", message: "the issuer says no."}]}}`,
			"Certificate c is not issued: the issuer says no. cert-manager retries at 2026-01-02T08:00:00Z, or at once with: cmctl renew c"},
	} {
		c := read[certmanagerv1.Certificate](t, test.certificate)
		c.Name, c.Generation = "c", 2
		if got := Certificate(c); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}

func TestExpiringCA(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	const todo = `, and what has to be done then is in docs/how-to/certificates.md, "When a CA expires"`
	for _, test := range []struct {
		reason  string
		ca      bool
		left    time.Duration
		renewal *metav1.Time
		want    string
	}{
		{"ten years", true, 3650 * day, nil, ""},
		{"a year", true, 365 * day, nil, ""},
		{"a day less than a year", true, 364 * day, nil, "the CA c expires on 2026-12-31; cert-manager renews it with the same key before that" + todo},
		{"its renewal is planned", true, 364 * day, new(metav1.NewTime(now.Add(330 * day))), "the CA c expires on 2026-12-31; cert-manager renews it with the same key on 2026-11-27" + todo},
		{"it has expired", true, -day, nil, "the CA c expires on 2025-12-31; cert-manager renews it with the same key before that" + todo},
		{"leaf certificates are renewed automatically", false, day, nil, ""},
	} {
		c := &certmanagerv1.Certificate{Spec: certmanagerv1.CertificateSpec{IsCA: test.ca}}
		c.Name, c.Status.NotAfter, c.Status.RenewalTime = "c", new(metav1.NewTime(now.Add(test.left))), test.renewal
		if got := ExpiringCA(c, now); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
	if got := ExpiringCA(&certmanagerv1.Certificate{Spec: certmanagerv1.CertificateSpec{IsCA: true}}, now); got != "" {
		t.Errorf("a CA that is not issued: %q", got)
	}
}

// TestShortLived compares what an issuer has given with what was asked for.
func TestShortLived(t *testing.T) {
	const issued = `conditions: [{type: Ready, status: "True"}], notBefore: "2026-01-01T00:00:00Z"`
	const short = "the issuer gives Certificate c a lifetime of 720h0m30s, where spec.tls.duration asks for 2160h0m0s"
	for reason, test := range map[string]struct{ certificate, want string }{
		"it is not issued yet": {`{spec: {duration: 2160h}}`, ""},
		"as was asked for":     {`{spec: {duration: 2160h}, status: {` + issued + `, notAfter: "2026-04-01T00:00:00Z"}}`, ""},
		"a little less":        {`{spec: {duration: 2160h}, status: {` + issued + `, notAfter: "2026-03-25T00:00:00Z"}}`, ""},
		"a third":              {`{spec: {duration: 2160h}, status: {` + issued + `, notAfter: "2026-01-31T00:00:30Z", renewalTime: "2026-01-21T00:00:20Z"}}`, short},
		"renewed at once":      {`{spec: {duration: 2160h}, status: {` + issued + `, notAfter: "2026-01-31T00:00:30Z", renewalTime: "2026-01-01T00:00:30Z"}}`, short + ", so cert-manager renews it again and again: set spec.tls.renewBefore to less than that lifetime, or remove it"},
		"more was asked for since": {`{spec: {duration: 2160h}, status: {notBefore: "2026-01-01T00:00:00Z", notAfter: "2026-01-31T00:00:00Z",
			conditions: [{type: Ready, status: "False", message: "the duration differs"}]}}`, ""},
		"a CA": {`{spec: {isCA: true, duration: 2160h}, status: {` + issued + `, notAfter: "2026-01-31T00:00:30Z"}}`, ""},
	} {
		c := read[certmanagerv1.Certificate](t, test.certificate)
		c.Name = "c"
		if got := ShortLived(c); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}

func TestCertificateRequest(t *testing.T) {
	first := read[certmanagerv1.CertificateRequest](t, `{metadata: {namespace: team, name: c-1}, status: {conditions: [{type: Ready, status: "False", message: the first is refused}]}}`)
	second := read[certmanagerv1.CertificateRequest](t, `{metadata: {namespace: team, name: c-2}, status: {conditions: [{type: Approved, status: "True", message: approved}, {type: Ready, status: "False", message: the second is refused}]}}`)
	granted := read[certmanagerv1.CertificateRequest](t, `{metadata: {namespace: team, name: c-1}, status: {conditions: [{type: Ready, status: "True", message: issued}]}}`)
	elsewhere := read[certmanagerv1.CertificateRequest](t, `{metadata: {namespace: other, name: c-1}, status: {conditions: [{type: Ready, status: "False", message: of somebody else}]}}`)
	waiting := read[certmanagerv1.CertificateRequest](t, `{metadata: {namespace: team, name: c-1}}`)
	denied := read[certmanagerv1.CertificateRequest](t, `{metadata: {namespace: team, name: c-1}, status: {conditions: [{type: Denied, status: "True", message: CN not allowed}, {type: Ready, status: "False", message: The CertificateRequest was denied by an approval controller}]}}`)
	approved := read[certmanagerv1.CertificateRequest](t, `{metadata: {namespace: team, name: c-1}, status: {conditions: [{type: Approved, status: "True", message: approved}]}}`)
	for reason, test := range map[string]struct {
		certificate string
		requests    []client.Object
		err         error
		want        string
	}{
		"there is no request":              {`{}`, []client.Object{elsewhere}, nil, ""},
		"the first request":                {`{}`, []client.Object{first, second}, nil, "the first is refused"},
		"one for the next revision":        {`{status: {revision: 1}}`, []client.Object{first, second}, nil, "the second is refused"},
		"no one has approved it":           {`{}`, []client.Object{waiting}, nil, "CertificateRequest c-1 is waiting for approval, by cert-manager itself, an approver such as approver-policy, or cmctl approve"},
		"it is denied":                     {`{}`, []client.Object{denied}, nil, "CertificateRequest c-1 is denied: CN not allowed"},
		"the issuer has not said anything": {`{}`, []client.Object{approved}, nil, ""},
		"it is granted":                    {`{}`, []client.Object{granted}, nil, ""},
		"what can't be read says nothing":  {`{}`, []client.Object{first}, errors.New("later"), ""},
	} {
		c := read[certmanagerv1.Certificate](t, test.certificate)
		c.Namespace, c.Name = "team", "c"
		if got := reading(t, test.err, test.requests...).CertificateRequest(t.Context(), c); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}
