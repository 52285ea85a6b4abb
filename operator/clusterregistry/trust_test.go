package clusterregistry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// testCA is a CA of a test.
type testCA struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// newCA returns a CA. All have the same name, as those have that cert-manager
// makes one after the other.
func newCA(t *testing.T, ends time.Time) testCA {
	t.Helper()
	ca := testCA{t: t}
	ca.certificate, ca.key, ca.pem = ca.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: ends})
	return ca
}

// leaf returns a certificate that the CA has signed.
func (ca testCA) leaf() []byte {
	_, _, content := ca.sign(&x509.Certificate{DNSNames: []string{"fleet-server"}, NotAfter: time.Now().Add(time.Hour)})
	return content
}

func (ca testCA) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	ca.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		ca.t.Fatal(err)
	}
	template.SerialNumber, template.Subject, template.NotBefore = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "fleet-serving-ca"}, time.Now().Add(-time.Hour)
	parent, signer := ca.certificate, ca.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		ca.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		ca.t.Fatal(err)
	}
	return certificate, key, encodeCertificate(certificate)
}

func join(parts ...[]byte) []byte {
	var out []byte
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}

// TestAuthority is about what is published of a CA that was replaced.
func TestAuthority(t *testing.T) {
	later := time.Now().Add(time.Hour)
	a, b := newCA(t, later), newCA(t, later)
	for _, test := range []struct {
		reason              string
		current, published  []byte
		want                []byte
		announced, replaced bool
	}{
		{"nothing was published yet", a.pem, nil, a.pem, false, false},
		{"all is as it was", a.pem, a.pem, a.pem, true, false},
		{"the CA was replaced", b.pem, a.pem, join(b.pem, a.pem), false, true},
		{"and both are published", b.pem, join(b.pem, a.pem), join(b.pem, a.pem), true, true},
		{"the CA is missing", nil, a.pem, a.pem, true, true},
		{"a CA is added to spec.tls.caBundle", join(a.pem, b.pem), a.pem, join(a.pem, b.pem), false, false},
		{"what is published is nonsense", a.pem, []byte("nonsense"), a.pem, false, false},
		{"there is nothing at all", nil, nil, nil, true, false},
	} {
		got := authority{current: test.current, published: test.published}
		if string(got.bundle()) != string(test.want) {
			t.Errorf("%s: the bundle is\n%s", test.reason, got.bundle())
		}
		if got.announced() != test.announced || got.replaced() != test.replaced {
			t.Errorf("%s: announced %v, replaced %v", test.reason, got.announced(), got.replaced())
		}
	}
	if got := valid(join(newCA(t, time.Now().Add(-time.Minute)).pem, a.pem), time.Now()); string(got) != string(a.pem) {
		t.Errorf("an expired CA is still published:\n%s", got)
	}
}

func TestSignedBy(t *testing.T) {
	later := time.Now().Add(time.Hour)
	a, b := newCA(t, later), newCA(t, later)
	intermediate := testCA{t: t}
	intermediate.certificate, intermediate.key, intermediate.pem = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: later})
	for _, test := range []struct {
		reason       string
		leaf, bundle []byte
		want         bool
	}{
		{"its own CA", a.leaf(), a.pem, true},
		{"one of two", a.leaf(), join(b.pem, a.pem), true},
		{"another CA of the same name", a.leaf(), b.pem, false},
		{"through an intermediate CA", join(intermediate.leaf(), intermediate.pem), a.pem, true},
		{"a chain that ends elsewhere", join(intermediate.leaf(), intermediate.pem), b.pem, false},
		{"what is no certificate is for others to report", []byte("nonsense"), a.pem, true},
		{"and so is a missing CA", a.leaf(), nil, true},
	} {
		if got := signedBy(test.leaf, test.bundle); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
	}
}

// installedAggregated is a registry that was complete once.
const installedAggregated = `{spec: {mode: Aggregated, etcd: {replicas: 1}}, status: {history: [{version: v0.1.0, state: Completed, startTime: null}],
  inventory: [{group: apiregistration.k8s.io, kind: APIService, name: v1alpha1.clusterregistry.k8s.io}]}}`

func registered(ca []byte) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.clusterregistry.k8s.io", Labels: map[string]string{
			operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: "fleet"}},
		Spec: apiregistrationv1.APIServiceSpec{Group: "clusterregistry.k8s.io", Version: "v1alpha1", CABundle: ca, Service: &apiregistrationv1.ServiceReference{Namespace: "team", Name: "fleet-server"}},
	}
}

func secretOf(name string, content []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: map[string][]byte{corev1.TLSCertKey: content}}
}

// TestReadTrust is about what a registry publishes when a CA's Secret was deleted,
// or holds something else: never nothing, and never less than is in use.
func TestReadTrust(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now, etcd := newCA(t, later), newCA(t, later), newCA(t, later)
	stranger := registered(newCA(t, later).pem)
	stranger.Labels = nil
	unlabelled := registered(old.pem)
	unlabelled.Labels, unlabelled.ManagedFields = nil, []metav1.ManagedFieldsEntry{{Manager: string(apply.FieldOwner), Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: "apiregistration.k8s.io/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}}
	for _, test := range []struct {
		reason  string
		objects []client.Object
		want    []byte
		missing string
	}{
		{"all is as it was", []client.Object{secretOf("fleet-serving-ca", old.pem), registered(old.pem)}, old.pem, ""},
		{"the Secret was deleted, and cert-manager is away", []client.Object{registered(old.pem)}, old.pem, "Secret fleet-serving-ca"},
		{"its content was replaced by nonsense", []client.Object{secretOf("fleet-serving-ca", []byte("nonsense")), registered(old.pem)}, old.pem, "Secret fleet-serving-ca"},
		{"the Secret was deleted, and made again", []client.Object{secretOf("fleet-serving-ca", now.pem), registered(old.pem)}, join(now.pem, old.pem), ""},
		{"the APIService was deleted, too", []client.Object{secretOf("fleet-serving-ca", now.pem)}, now.pem, ""},
		{"the APIService has lost its labels", []client.Object{secretOf("fleet-serving-ca", now.pem), unlabelled}, join(now.pem, old.pem), ""},
		{"the APIService is another's", []client.Object{secretOf("fleet-serving-ca", now.pem), stranger}, now.pem, ""},
	} {
		s := look(t, installedAggregated)
		if err := reading(t, append(test.objects, secretOf("fleet-etcd-ca", etcd.pem))...).readTrust(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if string(s.trust.Serving) != string(test.want) || s.missing() != test.missing {
			t.Errorf("%s: %q is missing, and published is\n%s", test.reason, s.missing(), s.trust.Serving)
		}
	}
}

// TestReadIssued keeps the host's way to servers whose issuer is not the one that
// spec.tls.caBundle belongs to.
func TestReadIssued(t *testing.T) {
	later := time.Now().Add(time.Hour)
	wrong, issuer, old := newCA(t, later), newCA(t, later), newCA(t, later)
	secret := secretOf("fleet-serving", issuer.leaf())
	secret.Data[caKey] = issuer.pem
	s := look(t, installedAggregated)
	s.registry.Spec.TLS.IssuerRef, s.registry.Spec.TLS.CABundle = &operatorv1alpha1.IssuerReference{Name: "corporate"}, wrong.pem
	r := reading(t, secret, secretOf("fleet-etcd-ca", old.pem), registered(old.pem))
	if err := r.readTrust(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if want := join(wrong.pem, old.pem, issuer.pem); string(s.trust.Serving) != string(want) {
		t.Errorf("published is\n%s", s.trust.Serving)
	}
	if v := r.replacedCAs(t.Context(), s, done); v.Complete() || v.Reason != operatorv1alpha1.ReasonCAMismatch || !strings.Contains(v.Message, "set spec.tls.caBundle") {
		t.Errorf("the mistake is not reported: %+v", v)
	}
}

// TestReadClientTrust keeps users of a client CA that was replaced, by what the
// status says: anyone who may write ConfigMaps may write that of the servers.
func TestReadClientTrust(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now, forged := newCA(t, later), newCA(t, later), newCA(t, later)
	s := look(t, `{spec: {mode: Independent, etcd: {replicas: 1}}}`)
	s.registry.Status.ClientCABundle = old.pem
	trust := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-trust"}, Data: map[string]string{"client-ca.crt": string(forged.pem)}}
	if err := reading(t, secretOf("fleet-client-ca", now.pem), trust).readTrust(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if want := join(now.pem, old.pem); string(s.trust.Clients) != string(want) || string(s.registry.Status.ClientCABundle) != string(want) {
		t.Errorf("the servers accept\n%s, the status has\n%s", s.trust.Clients, s.registry.Status.ClientCABundle)
	}
}

// TestMissingCA holds everything of an installed registry while a CA is missing.
func TestMissingCA(t *testing.T) {
	s := look(t, installedAggregated)
	s.servingCA, s.etcdCA = authority{source: "Secret fleet-serving-ca"}, authority{source: "Secret fleet-etcd-ca", current: []byte("x")}
	v := s.withCAs(verdict.Waiting(operatorv1alpha1.ReasonCertificateNotReady, "Certificate fleet-serving-ca is not issued yet"))
	if v.State != verdict.ReadOnly || v.Reason != operatorv1alpha1.ReasonCAMissing || !strings.Contains(v.Message, "Secret fleet-serving-ca") || !strings.Contains(v.Message, "is not issued yet") {
		t.Errorf("%+v", v)
	}
	s.servingCA.current = []byte("x")
	if v := s.withCAs(verdict.Waiting("R", "m")); v.State == verdict.ReadOnly || v.Reason != "R" {
		t.Errorf("no CA is missing: %+v", v)
	}
}

// TestIssuable leaves the servers' certificate as it is while it is not known which
// CA will sign it, as when spec.tls.issuerRef was removed and there is no CA of the
// registry's own yet.
func TestIssuable(t *testing.T) {
	ca := newCA(t, time.Now().Add(time.Hour)).pem
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
		s := look(t, installedAggregated)
		s.servingCA = authority{current: test.current, published: test.published}
		s.rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageCertificates: {
			object("Issuer", "fleet-serving"), object("Certificate", "fleet-serving-ca"), object("Certificate", "fleet-serving")}}
		if got := s.issuable(); len(got) != test.want || len(s.rendered.Stages[render.StageCertificates]) != 3 {
			t.Errorf("%s: %d objects", test.reason, len(got))
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
		if got := requestIssuance(c, now); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
		issuing := 0
		for _, condition := range c.Status.Conditions {
			if condition.Type == certmanagerv1.CertificateConditionIssuing && condition.Status == "True" && condition.Reason == triggered {
				issuing++
			}
		}
		if test.want != (issuing == 1) || len(c.Status.Conditions) < before {
			t.Errorf("%s: %+v", test.reason, c.Status.Conditions)
		}
	}
}

// TestRegistration creates an APIService only where a server answers: without one
// it would make deletions of namespaces hang, and an administrator may have
// deleted it for that.
func TestRegistration(t *testing.T) {
	for _, test := range []struct {
		reason     string
		registered bool
		answering  int
		created    bool
	}{
		{"no server answers", false, 0, false},
		{"a server answers", false, 1, true},
		{"it is there: it is kept in order", true, 0, true},
	} {
		s := look(t, installedAggregated)
		s.answering = test.answering
		var objects []client.Object
		if test.registered {
			objects = append(objects, registered(nil))
		}
		r := reading(t, objects...)
		service, err := toUnstructured(registered([]byte("CA")))
		if err != nil {
			t.Fatal(err)
		}
		service.SetAPIVersion("apiregistration.k8s.io/v1")
		service.SetKind("APIService")
		s.rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageEndpoint: {service}}
		v := r.apiService(t.Context(), s)
		current := &apiregistrationv1.APIService{}
		err = r.Client.Get(t.Context(), client.ObjectKey{Name: service.GetName()}, current)
		if created := err == nil && string(current.Spec.CABundle) == "CA"; created != test.created || v.Complete() || test.created == strings.Contains(v.Message, "is created when a server answers") {
			t.Errorf("%s: created %v, %+v", test.reason, created, v)
		}
	}
}
