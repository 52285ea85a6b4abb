package clusterregistry

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
	"github.com/clusterregistry/operator/operator/verdict"
)

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

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
	old, now, etcd := trusttest.NewCA(t, later), trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	stranger := registered(trusttest.NewCA(t, later).PEM)
	stranger.Labels = nil
	unlabelled := registered(old.PEM)
	unlabelled.Labels, unlabelled.ManagedFields = nil, []metav1.ManagedFieldsEntry{{Manager: string(apply.FieldOwner), Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: "apiregistration.k8s.io/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}}
	for _, test := range []struct {
		reason  string
		objects []client.Object
		want    []byte
		missing string
	}{
		{"all is as it was", []client.Object{secretOf("fleet-serving-ca", old.PEM), registered(old.PEM)}, old.PEM, ""},
		{"the Secret was deleted, and cert-manager is away", []client.Object{registered(old.PEM)}, old.PEM, "Secret fleet-serving-ca"},
		{"its content was replaced by nonsense", []client.Object{secretOf("fleet-serving-ca", []byte("nonsense")), registered(old.PEM)}, old.PEM, "Secret fleet-serving-ca"},
		{"the Secret was deleted, and made again", []client.Object{secretOf("fleet-serving-ca", now.PEM), registered(old.PEM)}, join(now.PEM, old.PEM), ""},
		{"the APIService was deleted, too", []client.Object{secretOf("fleet-serving-ca", now.PEM)}, now.PEM, ""},
		{"the APIService has lost its labels", []client.Object{secretOf("fleet-serving-ca", now.PEM), unlabelled}, join(now.PEM, old.PEM), ""},
		{"the APIService is another's", []client.Object{secretOf("fleet-serving-ca", now.PEM), stranger}, now.PEM, ""},
	} {
		s := look(t, installedAggregated)
		if err := reading(t, append(test.objects, secretOf("fleet-etcd-ca", etcd.PEM))...).readTrust(t.Context(), s); err != nil {
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
	wrong, issuer, old := trusttest.NewCA(t, later), trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	secret := secretOf("fleet-serving", issuer.Leaf())
	secret.Data[caKey] = issuer.PEM
	s := look(t, installedAggregated)
	s.registry.Spec.TLS.IssuerRef, s.registry.Spec.TLS.CABundle = &operatorv1alpha1.IssuerReference{Name: "corporate"}, wrong.PEM
	r := reading(t, secret, secretOf("fleet-etcd-ca", old.PEM), registered(old.PEM))
	if err := r.readTrust(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if want := join(wrong.PEM, old.PEM, issuer.PEM); string(s.trust.Serving) != string(want) {
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
	old, now, forged := trusttest.NewCA(t, later), trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	s := look(t, `{spec: {mode: Independent, etcd: {replicas: 1}}}`)
	s.registry.Status.ClientCABundle = old.PEM
	trust := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-trust"}, Data: map[string]string{"client-ca.crt": string(forged.PEM)}}
	if err := reading(t, secretOf("fleet-client-ca", now.PEM), trust).readTrust(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if want := join(now.PEM, old.PEM); string(s.trust.Clients) != string(want) || string(s.registry.Status.ClientCABundle) != string(want) {
		t.Errorf("the servers accept\n%s, the status has\n%s", s.trust.Clients, s.registry.Status.ClientCABundle)
	}
}

// TestMissingCA holds everything of an installed registry while a CA is missing.
func TestMissingCA(t *testing.T) {
	s := look(t, installedAggregated)
	s.servingCA, s.etcdCA = trust.Authority{Source: "Secret fleet-serving-ca"}, trust.Authority{Source: "Secret fleet-etcd-ca", Current: []byte("x")}
	v := s.withCAs(verdict.Waiting(operatorv1alpha1.ReasonCertificateNotReady, "Certificate fleet-serving-ca is not issued yet"))
	if v.State != verdict.ReadOnly || v.Reason != operatorv1alpha1.ReasonCAMissing || !strings.Contains(v.Message, "Secret fleet-serving-ca") || !strings.Contains(v.Message, "is not issued yet") {
		t.Errorf("%+v", v)
	}
	s.servingCA.Current = []byte("x")
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
		s := look(t, installedAggregated)
		s.servingCA = trust.Authority{Current: test.current, Published: test.published}
		s.rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageCertificates: {
			object("Issuer", "fleet-serving"), object("Certificate", "fleet-serving-ca"), object("Certificate", "fleet-serving")}}
		if got := s.issuable(); len(got) != test.want || len(s.rendered.Stages[render.StageCertificates]) != 3 {
			t.Errorf("%s: %d objects", test.reason, len(got))
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
