package trust_test

import (
	"fmt"
	"slices"
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
		a, err := trust.Read(t.Context(), operandtest.New(t, test.registry, test.objects...), generation.InUse{Signing: 1}, trust.Copy{})
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

// TestReadCopy is about a record that got lost, or was brought back from before: the copy of it
// says which CA was dropped and, where there is none, what was accepted and what spec says.
func TestReadCopy(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, second := trusttest.NamedCA(t, "fleet-client-ca", later).PEM, trusttest.NamedCA(t, "fleet-client-ca-2", later).PEM
	both, two := generation.InUse{Signing: 2, Also: 1}, generation.InUse{Signing: 2}
	for _, test := range []struct {
		reason, record, copied, drop string
		leaf                         string
		want                         generation.InUse
		accepted                     []byte
		damaged                      bool
	}{
		{"both agree", "2,1", "2,1", "", "fleet-client-ca-2", both, join(first, second), false},
		{"the record is lost", "", "2", "", "fleet-client-ca-2", two, second, false},
		{"the record is of before", "2,1", "2", "", "fleet-client-ca-2", two, second, false},
		{"the copy is of before", "2", "2,1", "", "fleet-client-ca-2", two, second, false},
		{"both are lost, and what is accepted was not dropped", "", "", "", "fleet-client-ca-2", both, join(first, second), false},
		{"both are lost, and it was", "", "", ", drop: {client: 1}", "fleet-client-ca-2", two, second, false},
		{"the record is lost, and its copy is damaged", "", "both", "", "fleet-client-ca-2", both, join(first, second), true},
		{"the copy is damaged", "2", "both", "", "fleet-client-ca-2", two, second, false},
		{"the record is damaged, and its copy counts", "both", "2", "", "fleet-client-ca", two, second, false},
		{"both are damaged, so that nothing is dropped", "both", "neither", "", "fleet-client-ca", generation.InUse{Signing: 1}, join(first, second), true},
		{"the record is damaged, and has no copy, so that nothing is dropped", "both", "", "", "fleet-client-ca", generation.InUse{Signing: 1}, join(first, second), true},
	} {
		objects := []client.Object{issued("fleet-admin", test.leaf), operandtest.Secret("fleet-client-ca", first), operandtest.Secret("fleet-client-ca-2", second)}
		if test.record != "" {
			objects = append(objects, record(map[string]string{"client": test.record}))
		}
		o := operandtest.New(t, "{spec: {mode: Independent, etcd: {replicas: 1}, tls: {rotation: {client: 2"+test.drop+"}}}, status: {"+operandtest.Complete[2:]+"}}", objects...)
		o.Registry.Status.ClientCABundle = join(first, second)
		a, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1}, trust.Copy{Clients: test.copied})
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Clients.Bundle(); a.Clients.InUse != test.want || len(trust.Parse(got)) != len(trust.Parse(test.accepted)) || (a.Err != nil) != test.damaged {
			t.Errorf("%s: %s is in use, %d are accepted, %v", test.reason, a.Clients.InUse, len(trust.Parse(got)), a.Err)
		}
	}
}

// TestReadSeveral has each generation that was accepted be dropped by name, also where the record
// and its copy are lost: the oldest is the previous one, and none is forgotten.
func TestReadSeveral(t *testing.T) {
	later := time.Now().Add(time.Hour)
	ca := func(name string) []byte { return trusttest.NamedCA(t, name, later).PEM }
	first, lost, third := ca("fleet-client-ca"), ca("fleet-client-ca-2"), ca("fleet-client-ca-3")
	for _, test := range []struct {
		reason, record, drop string
		want                 generation.InUse
		former               []int32
	}{
		{"the key of the second got lost, and another one took its place", "3,1", "", generation.InUse{Signing: 3, Also: 1}, []int32{1, 2}},
		{"it is recorded that all are dropped", "3", "", generation.InUse{Signing: 3}, nil},
		{"the record is lost", "", "", generation.InUse{Signing: 3, Also: 1}, []int32{1, 2}},
		{"the record is lost, and the first was dropped", "", ", drop: {client: 1}", generation.InUse{Signing: 3, Also: 2}, []int32{2}},
		{"the record is lost, and both were dropped", "", ", drop: {client: 2}", generation.InUse{Signing: 3}, nil},
	} {
		objects := []client.Object{issued("fleet-admin", "fleet-client-ca-3"), operandtest.Secret("fleet-client-ca", first), operandtest.Secret("fleet-client-ca-3", third)}
		if test.record != "" {
			objects = append(objects, record(map[string]string{"client": test.record}))
		}
		o := operandtest.New(t, "{spec: {mode: Independent, etcd: {replicas: 1}, tls: {rotation: {client: 3"+test.drop+"}}}, status: {"+operandtest.Complete[2:]+"}}", objects...)
		o.Registry.Status.ClientCABundle = join(first, lost, third)
		a, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1}, trust.Copy{})
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Clients.Former(); a.Clients.InUse != test.want || !slices.Equal(got, test.former) || len(trust.Parse(a.Clients.Bundle())) != len(got)+1 {
			t.Errorf("%s: %s is in use, before it %v, and %d are accepted", test.reason, a.Clients.InUse, got, len(trust.Parse(a.Clients.Bundle())))
		}
	}
}

// TestLost has no other key take the place of one that was given to people and is to sign
// next: neither is it published, nor is the one that is lost taken back.
func TestLost(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, given, other := trusttest.NamedCA(t, "fleet-serving-ca", later).PEM, trusttest.NamedCA(t, "fleet-serving-ca-2", later).PEM, trusttest.NamedCA(t, "fleet-serving-ca-2", later).PEM
	for _, test := range []struct {
		reason, mode string
		record       string
		secret       []byte
		lost         bool
		recorded     string
	}{
		{"it is recorded before it is published", "Independent", "1,2", given, false, "1,2 " + trust.KeyFingerprint(given)},
		{"it is there", "Independent", "1,2 " + trust.KeyFingerprint(given), given, false, "1,2 " + trust.KeyFingerprint(given)},
		{"it has another key", "Independent", "1,2 " + trust.KeyFingerprint(given), other, true, "1,2 " + trust.KeyFingerprint(given)},
		{"it was deleted", "Independent", "1,2 " + trust.KeyFingerprint(given), nil, true, "1,2 " + trust.KeyFingerprint(given)},
		{"it is not issued yet", "Independent", "1,2", nil, false, "1,2"},
		{"it signs by now", "Independent", "2,1 " + trust.KeyFingerprint(given), given, false, "2,1"},
		{"programs have it, by the feed", "Aggregated, controllers: {feed: {}}", "1,2", given, false, "1,2 " + trust.KeyFingerprint(given)},
		{"no one but the host cluster has it", "Aggregated", "1,2", given, false, "1,2"},
	} {
		inUse, key, _ := strings.Cut(test.record, " ")
		stored := record(map[string]string{"serving": inUse, "serving-next-key": key})
		stored.Labels = map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: "fleet"}
		objects := []client.Object{stored, operandtest.Secret("fleet-serving-ca", first)}
		if test.secret != nil {
			objects = append(objects, operandtest.Secret("fleet-serving-ca-2", test.secret))
		}
		o := operandtest.New(t, "{spec: {mode: "+test.mode+", etcd: {replicas: 1}}, status: {endpoint: {url: 'https://a'}}}")
		o.HostCluster = operandtest.Host(t, append(objects, o.Registry.DeepCopy())...)
		if o.Registry.Status.Endpoint.CABundle = join(first, given); test.reason == "it is not issued yet" {
			o.Registry.Status.Endpoint.CABundle = first
		}
		a, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1}, trust.Copy{})
		if err != nil {
			t.Fatal(err)
		}
		if s := a.Serving; s.Lost != test.lost || test.lost && (s.Also != nil || string(s.Bundle()) != string(join(first, given))) {
			t.Errorf("%s: lost %t, published is\n%s", test.reason, s.Lost, s.Bundle())
		}
		if a.Lost("fleet-serving-ca-2") != test.lost || a.Lost("fleet-serving-ca") || a.Lost("fleet-serving") {
			t.Errorf("%s: what is waited for", test.reason)
		}
		if unissued := a.Serving.Unissued(); unissued != (test.reason == "it is not issued yet") {
			t.Errorf("%s: unissued %t", test.reason, unissued)
		}
		if err := a.Keep(t.Context(), o); err != nil || a.Copy().Serving != test.recorded && a.Copy().Serving != test.record {
			t.Errorf("%s: recorded is %q, %v", test.reason, a.Copy().Serving, err)
		}
		got := &corev1.ConfigMap{}
		if err := o.Live.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet-ca-generations"}, got); err != nil || strings.TrimSpace(got.Data["serving"]+" "+got.Data["serving-next-key"]) != test.recorded && test.reason != "it signs by now" {
			t.Errorf("%s: the record has %q, %v", test.reason, got.Data, err)
		}
		if u, err := generation.Parse(got.Data["serving"]); got.Data["serving-next-key"] != "" && (err != nil || u != a.Serving.InUse) {
			t.Errorf("%s: an operator that knows of no keys reads %s, %v", test.reason, u, err)
		}
	}
}

// TestAnnouncedEverywhere has a CA count as published when it is in each of the APIServices.
func TestAnnouncedEverywhere(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, second := trusttest.NamedCA(t, "fleet-serving-ca", later).PEM, trusttest.NamedCA(t, "fleet-serving-ca-2", later).PEM
	a := trust.Authority{InUse: generation.InUse{Signing: 1, Also: 2}, Current: first, Also: second, Published: join(first, second)}
	for _, test := range []struct {
		places [][]byte
		want   bool
	}{{nil, true}, {[][]byte{join(first, second)}, true}, {[][]byte{join(first, second), first}, false}} {
		if a.Places = test.places; a.Announced() != test.want {
			t.Errorf("%d places: %t", len(test.places), a.Announced())
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
		a, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1}, trust.Copy{})
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

// TestUnrecorded gives people no next CA whose key is not recorded, since another one could take
// its place then; and records that of one which they were given where the record of it got lost.
func TestUnrecorded(t *testing.T) {
	later := time.Now().Add(time.Hour)
	ca := func(name string) []byte { return trusttest.NamedCA(t, name, later).PEM }
	first, second, given := ca("fleet-client-ca"), ca("fleet-client-ca-2"), ca("fleet-client-ca-2")
	for _, test := range []struct {
		reason           string
		secret, accepted []byte
		frozen           bool
		before, after    []byte
		key              []byte
		lost             bool
	}{
		{"its key is recorded first", second, first, false, first, join(first, second), second, false},
		{"nothing is recorded", second, first, true, first, first, nil, false},
		{"it was given before", second, join(first, second), false, join(first, second), join(first, second), second, false},
		{"it was given before, and is another by now", second, join(first, given), false, join(first, given), join(first, given), given, true},
		{"it was given before, and is gone", nil, join(first, given), false, join(first, given), join(first, given), given, true},
		{"it and another one were", second, join(first, second, given), false, join(first, second, given), join(first, second, given), second, false},
	} {
		stored := record(map[string]string{"client": "1,2"})
		stored.Labels = operandtest.Secret("", nil).Labels
		objects := []client.Object{stored, operandtest.Secret("fleet-client-ca", first)}
		if test.secret != nil {
			objects = append(objects, operandtest.Secret("fleet-client-ca-2", test.secret))
		}
		o := operandtest.New(t, "{spec: {mode: Independent, etcd: {replicas: 1}}}")
		o.HostCluster = operandtest.Host(t, append(objects, o.Registry.DeepCopy())...)
		o.Registry.Status.ClientCABundle = test.accepted
		if test.frozen {
			o.Freeze("spec.paused is false")
		}
		a, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1}, trust.Copy{})
		if err != nil {
			t.Fatal(err)
		}
		if c := a.Clients; string(c.Bundle()) != string(test.before) || c.Lost != test.lost || c.Unissued() {
			t.Errorf("%s: lost %t, published is\n%s", test.reason, c.Lost, c.Bundle())
		}
		if err := a.Keep(t.Context(), o); err != nil || string(a.Clients.Bundle()) != string(test.after) {
			t.Errorf("%s: %v, published is then\n%s", test.reason, err, a.Clients.Bundle())
		}
		got := &corev1.ConfigMap{}
		want := ""
		if test.key != nil {
			want = trust.KeyFingerprint(test.key)
		}
		if err := o.Live.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet-ca-generations"}, got); err != nil || got.Data["client-next-key"] != want {
			t.Errorf("%s: the record has %q, %v", test.reason, got.Data, err)
		}
	}
}

// TestPlanted trusts no CA that someone has put where that of the next generation is to be: it
// is the registry's where its labels say so, or what cert-manager notes, or its key is recorded.
func TestPlanted(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, second := trusttest.NamedCA(t, "fleet-client-ca", later).PEM, trusttest.NamedCA(t, "fleet-client-ca-2", later).PEM
	noted := func(certificate, issuer string) map[string]string {
		return map[string]string{certmanagerv1.CertificateNameKey: certificate, certmanagerv1.IssuerNameAnnotationKey: issuer, certmanagerv1.IssuerKindAnnotationKey: "Issuer"}
	}
	for _, test := range []struct {
		reason, record      string
		labels, annotations map[string]string
		trusted             bool
	}{
		{"planted", "1,2", nil, nil, false},
		{"another Certificate's", "1,2", nil, noted("web", "fleet-selfsigned"), false},
		{"another issuer's", "1,2", nil, noted("fleet-client-ca-2", "corporate"), false},
		{"another registry's", "1,2", map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: "other"}, nil, false},
		{"it has lost its labels", "1,2", nil, noted("fleet-client-ca-2", "fleet-selfsigned"), true},
		{"it was restored from a backup, with its key alone", "1,2 " + trust.KeyFingerprint(second), nil, nil, true},
		{"it signed before", "3,2", nil, nil, true},
	} {
		secret := operandtest.Secret("fleet-client-ca-2", second)
		secret.Labels, secret.Annotations = test.labels, test.annotations
		objects := []client.Object{record(map[string]string{"client": test.record}), operandtest.Secret("fleet-client-ca", first), operandtest.Secret("fleet-client-ca-3", first), secret}
		a, err := trust.Read(t.Context(), operandtest.New(t, "{spec: {mode: Independent, etcd: {replicas: 1}}}", objects...), generation.InUse{Signing: 1}, trust.Copy{})
		if err != nil {
			t.Fatal(err)
		}
		if c := a.Clients; (c.Also != nil) != test.trusted || c.Lost || strings.Contains(string(c.Trusted()), string(second)) != test.trusted {
			t.Errorf("%s: trusted %t, lost %t", test.reason, c.Also != nil, c.Lost)
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
		a, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1}, trust.Copy{})
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
	step(" 1,2", read().Record(t.Context(), o, trust.Generations{Clients: trust.Recorded{InUse: generation.InUse{Signing: 1, Also: 2}}}))
	step("1,3 1,2", read().Record(t.Context(), o, trust.Generations{Serving: trust.Recorded{InUse: generation.InUse{Signing: 1, Also: 3}}}))
	step("1,3 2", read().Record(t.Context(), o, trust.Generations{Clients: trust.Recorded{InUse: generation.InUse{Signing: 2}}}))
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
		a, err := trust.Read(t.Context(), o, generation.InUse{Signing: 1}, trust.Copy{})
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
	lost := trust.Authorities{Serving: trust.Authority{InUse: generation.InUse{Signing: 1, Also: 2}, Lost: true}}
	lost.Describe(o.Registry)
	if c := o.Registry.Status.Certificates[2]; c.Use != "" || c.Generation != 0 {
		t.Errorf("one that is lost: %+v", c)
	}
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
