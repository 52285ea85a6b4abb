package trust_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
)

// TestReadTrust is about what a registry publishes when a CA's Secret was deleted,
// or holds something else: never nothing, and never less than is in use.
func TestReadTrust(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now, etcd := trusttest.NewCA(t, later), trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	registered := operandtest.APIService("fleet", old.PEM)
	stranger := operandtest.APIService("fleet", trusttest.NewCA(t, later).PEM)
	stranger.Labels = nil
	unlabelled := operandtest.APIService("fleet", old.PEM)
	unlabelled.Labels, unlabelled.ManagedFields = nil, []metav1.ManagedFieldsEntry{{Manager: string(apply.FieldOwner), Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: "apiregistration.k8s.io/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}}
	for _, test := range []struct {
		reason  string
		objects []client.Object
		want    []byte
		missing string
	}{
		{"all is as it was", []client.Object{operandtest.Secret("fleet-serving-ca", old.PEM), registered.DeepCopy()}, old.PEM, ""},
		{"the Secret was deleted, and cert-manager is away", []client.Object{registered.DeepCopy()}, old.PEM, "Secret fleet-serving-ca"},
		{"its content was replaced by nonsense", []client.Object{operandtest.Secret("fleet-serving-ca", []byte("nonsense")), registered.DeepCopy()}, old.PEM, "Secret fleet-serving-ca"},
		{"the Secret was deleted, and made again", []client.Object{operandtest.Secret("fleet-serving-ca", now.PEM), registered.DeepCopy()}, join(now.PEM, old.PEM), ""},
		{"the APIService was deleted, too", []client.Object{operandtest.Secret("fleet-serving-ca", now.PEM)}, now.PEM, ""},
		{"the APIService has lost its labels", []client.Object{operandtest.Secret("fleet-serving-ca", now.PEM), unlabelled}, join(now.PEM, old.PEM), ""},
		{"the APIService is another's", []client.Object{operandtest.Secret("fleet-serving-ca", now.PEM), stranger}, now.PEM, ""},
	} {
		o := operandtest.New(t, operandtest.InstalledAggregated, append(test.objects, operandtest.Secret("fleet-etcd-ca", etcd.PEM))...)
		authorities, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1}, trust.Copy{})
		if err != nil {
			t.Fatal(err)
		}
		missing := authorities.Missing(o.Registry)
		if published := authorities.Rendered().Serving; string(published) != string(test.want) || missing != test.missing {
			t.Errorf("%s: %q is missing, and published is\n%s", test.reason, missing, published)
		}
	}
}

// TestReadIssued keeps the host's way to servers whose issuer is not the one that
// spec.tls.caBundle belongs to.
func TestReadIssued(t *testing.T) {
	later := time.Now().Add(time.Hour)
	wrong, issuer, old := trusttest.NewCA(t, later), trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	secret := operandtest.Secret("fleet-serving", issuer.Leaf())
	secret.Data[operand.CAKey] = issuer.PEM
	o := operandtest.New(t, operandtest.InstalledAggregated, secret, operandtest.Secret("fleet-etcd-ca", old.PEM), operandtest.APIService("fleet", old.PEM))
	o.Registry.Spec.TLS.IssuerRef, o.Registry.Spec.TLS.CABundle = &operatorv1alpha1.IssuerReference{Name: "corporate"}, wrong.PEM
	authorities, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1}, trust.Copy{})
	if err != nil {
		t.Fatal(err)
	}
	if want, published := join(wrong.PEM, old.PEM, issuer.PEM), authorities.Rendered().Serving; string(published) != string(want) {
		t.Errorf("published is\n%s", published)
	}
}

// TestReadClientTrust keeps users of a client CA that was replaced, by what the
// status says: anyone who may write ConfigMaps may write that of the servers.
func TestReadClientTrust(t *testing.T) {
	later := time.Now().Add(time.Hour)
	old, now, forged := trusttest.NewCA(t, later), trusttest.NewCA(t, later), trusttest.NewCA(t, later)
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-trust"}, Data: map[string]string{"client-ca.crt": string(forged.PEM)}}
	o := operandtest.New(t, `{spec: {mode: Independent, etcd: {replicas: 1}}}`, operandtest.Secret("fleet-client-ca", now.PEM), published)
	o.Registry.Status.ClientCABundle = old.PEM
	authorities, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1}, trust.Copy{})
	if err != nil {
		t.Fatal(err)
	}
	if want, accepted := join(now.PEM, old.PEM), authorities.Rendered().Clients; string(accepted) != string(want) {
		t.Errorf("the servers accept\n%s", accepted)
	}
}
