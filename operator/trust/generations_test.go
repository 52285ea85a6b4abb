package trust_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
)

// record returns a record of the generations in use.
func record(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-ca-generations"}, Data: data}
}

// issued returns a Secret of a certificate that an Issuer has issued.
func issued(name, issuer string) *corev1.Secret {
	secret := operandtest.Secret(name, []byte("any"))
	secret.Annotations = map[string]string{certmanagerv1.IssuerNameAnnotationKey: issuer}
	return secret
}

// TestReadGenerations reads which CAs are in use from the record, and from what there is of
// the registry where none is: a record that got lost must not bring back a dropped CA, nor
// have another one sign.
func TestReadGenerations(t *testing.T) {
	const independent = "{spec: {mode: Independent, etcd: {replicas: 1}, tls: {rotation: {serving: 3, client: 2}}}}"
	installed := strings.Replace(independent, "}}}}", "}}}, status: {"+operandtest.Complete[2:]+"}}", 1)
	for _, test := range []struct {
		reason, registry string
		objects          []client.Object
		serving, clients generation.InUse
		damaged          string
	}{
		{"a new registry begins with what it asks for", independent, nil, generation.InUse{Signing: 3}, generation.InUse{Signing: 2}, ""},
		{"the record counts", independent, []client.Object{record(map[string]string{"serving": "1,3", "client": "2,1"}), issued("fleet-serving", "fleet-serving-ca-2")}, generation.InUse{Signing: 1, Also: 3}, generation.InUse{Signing: 2, Also: 1}, ""},
		{"one of them was never rotated", installed, []client.Object{record(map[string]string{"client": "2"}), issued("fleet-serving", "fleet-serving-ca")}, generation.InUse{Signing: 1}, generation.InUse{Signing: 2}, ""},
		{"the record got lost", installed, []client.Object{issued("fleet-serving", "fleet-serving-ca-2"), issued("fleet-admin", "fleet-client-ca")}, generation.InUse{Signing: 2}, generation.InUse{Signing: 1}, ""},
		{"the number was just raised, and a certificate is being issued again", installed, []client.Object{issued("fleet-serving", "fleet-serving-ca")}, generation.InUse{Signing: 1}, generation.InUse{Signing: 1}, ""},
		{"an issuer of the user's was there before", installed, []client.Object{issued("fleet-serving", "corporate"), issued("fleet-admin", "fleet-client-ca-x")}, generation.InUse{Signing: 3}, generation.InUse{Signing: 2}, ""},
		{"the record is damaged", installed, []client.Object{record(map[string]string{"serving": "both", "client": "2"}), issued("fleet-serving", "fleet-serving-ca-3")}, generation.InUse{Signing: 3}, generation.InUse{Signing: 2}, `ConfigMap fleet-ca-generations, the record of which CAs are in use, is damaged: serving is "both"`},
	} {
		a, err := trust.Read(t.Context(), operandtest.New(t, test.registry, test.objects...), generation.InUse{Signing: 1})
		if err != nil {
			t.Fatal(err)
		}
		if a.Serving.InUse != test.serving || a.Clients.InUse != test.clients {
			t.Errorf("%s: serving %s, clients %s", test.reason, a.Serving.InUse, a.Clients.InUse)
		}
		if (a.Err == nil) != (test.damaged == "") || a.Err != nil && !strings.Contains(a.Err.Error(), test.damaged) {
			t.Errorf("%s: %v", test.reason, a.Err)
		}
	}
}

// TestReadBoth has both generations in use be trusted, in one order whichever signs, and
// announced only when both were published.
func TestReadBoth(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, second := trusttest.NewCA(t, later).PEM, trusttest.NewCA(t, later).PEM
	objects := []client.Object{operandtest.Secret("fleet-serving-ca", first), operandtest.Secret("fleet-serving-ca-2", second), operandtest.APIService("fleet", first)}
	for _, test := range []struct {
		reason, record, source string
		current, also, bundle  []byte
		missing                string
		objects                []client.Object
	}{
		{"the next one", "1,2", "Secret fleet-serving-ca", first, second, join(first, second), "", objects},
		{"the previous one", "2,1", "Secret fleet-serving-ca-2", second, first, join(first, second), "", objects},
		{"it is dropped, and what was published is not yet", "2", "Secret fleet-serving-ca-2", second, nil, join(second, first), "", objects},
		{"the next one is not issued yet, which is no fault", "1,2", "Secret fleet-serving-ca", first, nil, first, "", objects[:1]},
		{"the one that signs is gone", "2,1", "Secret fleet-serving-ca-2", nil, first, first, "Secret fleet-serving-ca-2", objects[:1]},
	} {
		o := operandtest.New(t, operandtest.InstalledAggregated, append([]client.Object{record(map[string]string{"serving": test.record}), operandtest.Secret("fleet-etcd-ca", first)}, test.objects...)...)
		a, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1})
		if err != nil {
			t.Fatal(err)
		}
		s := a.Serving
		if s.Source != test.source || string(s.Current) != string(test.current) || string(s.Also) != string(test.also) || string(a.Rendered().Serving) != string(test.bundle) {
			t.Errorf("%s: from %s, published is\n%s", test.reason, s.Source, a.Rendered().Serving)
		}
		if missing := a.Missing(o.Registry); missing != test.missing {
			t.Errorf("%s: %q is missing", test.reason, missing)
		}
		if test.also != nil && (s.Announced() || s.Replaced()) {
			t.Errorf("%s: announced %t, replaced %t", test.reason, s.Announced(), s.Replaced())
		}
	}
}

// TestRecord writes one CA's generations down without forgetting the other's.
func TestRecord(t *testing.T) {
	o := operandtest.New(t, "{spec: {mode: Independent, etcd: {replicas: 1}}}")
	o.HostCluster = operandtest.Host(t, o.Registry.DeepCopy())
	written := func() string {
		t.Helper()
		got := &corev1.ConfigMap{}
		if err := o.Live.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet-ca-generations"}, got); err != nil {
			return ""
		}
		if got.Annotations[operatorv1alpha1.AnnotationRetain] == "" || len(got.OwnerReferences) > 0 {
			t.Errorf("it goes with the registry: %+v", got.ObjectMeta)
		}
		return got.Data["serving"] + " " + got.Data["client"]
	}
	read := func() *trust.Authorities {
		t.Helper()
		a, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	step := func(want string, err error) {
		t.Helper()
		if got := written(); err != nil || got != want {
			t.Errorf("%v, recorded is %q, want %q", err, got, want)
		}
	}
	step("", read().Keep(t.Context(), o)) // there is nothing to know
	step(" 1,2", read().Record(t.Context(), o, trust.Generations{Clients: generation.InUse{Signing: 1, Also: 2}}))
	step("1,3 1,2", read().Record(t.Context(), o, trust.Generations{Serving: generation.InUse{Signing: 1, Also: 3}}))
	step("1,3 2", read().Record(t.Context(), o, trust.Generations{Clients: generation.InUse{Signing: 2}}))
	if !contains(o, trust.GenerationsReference(o)) {
		t.Error("it is not in the inventory")
	}
}

// TestKeep records with what a new registry begins, before anything can get lost, and nothing
// in a read-only reconcile.
func TestKeep(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		o := operandtest.New(t, "{spec: {mode: Independent, etcd: {replicas: 1}, tls: {rotation: {client: 4}}}}")
		o.HostCluster = operandtest.Host(t, o.Registry.DeepCopy())
		if frozen {
			o.Freeze("spec.paused is false")
		}
		a, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Keep(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		got := &corev1.ConfigMap{}
		if err := o.Live.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet-ca-generations"}, got); (err == nil) == frozen || got.Data["client"] != map[bool]string{false: "4"}[frozen] {
			t.Errorf("read-only: %t: %v, %v", frozen, err, got.Data)
		}
	}
}

// TestDescribe says of each CA in the status which one it is, and what for.
func TestDescribe(t *testing.T) {
	o := operandtest.New(t, "{spec: {mode: Independent, etcd: {replicas: 1}}, status: {certificates: [{name: fleet-etcd-ca}, {name: fleet-serving-ca}, {name: fleet-serving-ca-2}, {name: fleet-client-ca-3}, {name: fleet-client-ca}, {name: fleet-serving}]}}")
	a := trust.Authorities{Serving: trust.Authority{InUse: generation.InUse{Signing: 1, Also: 2}}, Clients: trust.Authority{InUse: generation.InUse{Signing: 3, Also: 1}}}
	a.Describe(o.Registry)
	var got []string
	for _, c := range o.Registry.Status.Certificates {
		got = append(got, c.Name, fmt.Sprint(c.Generation), string(c.Use))
	}
	if want := "fleet-etcd-ca 1 Signing fleet-serving-ca 1 Signing fleet-serving-ca-2 2 Trusted fleet-client-ca-3 3 Signing fleet-client-ca 1 Trusted fleet-serving 0 "; strings.Join(got, " ") != want {
		t.Errorf("%q", strings.Join(got, " "))
	}
}

func contains(o *operand.Objects, reference operatorv1alpha1.ObjectReference) bool {
	for _, have := range o.Registry.Status.Inventory {
		if have == reference {
			return true
		}
	}
	return false
}
