package clusterapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubetesting "k8s.io/client-go/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/hostentry"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestImport makes an entry, says nothing that others rely on, and then writes no more.
func TestImport(t *testing.T) {
	b := newBench(t, nil, cluster("east"))
	b.must("east")
	if got := strings.Join(b.writes(), ", "); got != "create , update status" {
		t.Errorf("written: %s", got)
	}
	entry := b.east()
	want := v1beta1.ClusterSpec{
		Manager:   &v1beta1.Manager{Name: Manager},
		SourceRef: &v1beta1.SourceReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Namespace: "a", Name: "east", UID: "uid-east"},
		Endpoints: []v1beta1.Endpoint{{Name: "cluster-api", URL: "https://east.example.com:6443"}},
	}
	if !reflect.DeepEqual(entry.Spec, want) || !reflect.DeepEqual(entry.Labels, map[string]string{"env": "prod"}) || entry.Annotations[NamespaceAnnotation] != string(nsUID) {
		t.Errorf("%+v, labels %v, annotations %v", entry.Spec, entry.Labels, entry.Annotations)
	}
	var kinds []string
	for _, c := range ownConditions(entry) {
		kinds = append(kinds, c.Type)
	}
	if status := statusOf(entry); joinedOf(entry) != "True Imported" || status.Version.Kubernetes != "v1.37.1" || !reflect.DeepEqual(kinds, []string{"Joined", "Available", "Paused"}) || len(status.Conditions) != 1 || status.Reporters[0].LastSeen != nil {
		t.Errorf("%+v, of Cluster API %v", status, kinds)
	}
	b.clock.Step(24 * time.Hour)
	if b.must("east"); len(b.writes()) > 0 {
		t.Errorf("steady, and written: %v", b.writes())
	}
	// A kill after the creation leaves the report to the next start.
	entry.Status = nil
	if _, err := b.registry.ClusterregistryV1beta1().Clusters().UpdateStatus(t.Context(), entry, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if b.must("east"); strings.Join(b.writes(), ", ") != "update status" || joinedOf(b.east()) != "True Imported" {
		t.Errorf("written: %v", b.writes())
	}
}

// fields are managed fields of an entry, as written by a manager.
func fields(manager, operation, subresource, json string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(json)}
}

// TestChange brings entries up to date, and leaves what is not this package's.
func TestChange(t *testing.T) {
	const ownLabels = `{"f:metadata":{"f:labels":{"f:env":{},"f:example.com/old":{}}}}`
	const ownCA = `{"f:spec":{"f:endpoints":{"k:{\"name\":\"cluster-api\"}":{"f:caBundle":{}}}}}`
	for _, test := range []struct {
		reason string
		source func(*clusterv1.Cluster)
		entry  func(*v1beta1.Cluster)
		want   func(*v1beta1.Cluster) bool
	}{
		{"another address", func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint.Host = "10.0.0.1" }, nil,
			func(e *v1beta1.Cluster) bool { return e.Spec.Endpoints[0].URL == "https://10.0.0.1:6443" }},
		{"no address any more", func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{} }, nil,
			func(e *v1beta1.Cluster) bool { return e.Spec.Endpoints[0].URL == "https://east.example.com:6443" }},
		{"other endpoints", nil, func(e *v1beta1.Cluster) {
			e.Spec.Endpoints = []v1beta1.Endpoint{{Name: "vpn", URL: "https://vpn"}, {Name: endpointName, URL: "https://old", TLSServerName: "x"}}
		}, func(e *v1beta1.Cluster) bool {
			return e.Spec.Endpoints[0].URL == "https://vpn" && e.Spec.Endpoints[1].URL == "https://east.example.com:6443" && e.Spec.Endpoints[1].TLSServerName == "x"
		}},
		{"labels that are not copied any more", nil, func(e *v1beta1.Cluster) {
			e.Labels = map[string]string{"env": "old", "example.com/old": "x", "mine": "y"}
			e.ManagedFields = []metav1.ManagedFieldsEntry{fields(Manager, "Update", "", ownLabels)}
		}, func(e *v1beta1.Cluster) bool {
			return reflect.DeepEqual(e.Labels, map[string]string{"env": "prod", "mine": "y"})
		}},
		{"a label that a person has set since", nil, func(e *v1beta1.Cluster) {
			e.Labels = map[string]string{"example.com/old": "x"}
			e.ManagedFields = []metav1.ManagedFieldsEntry{fields("kubectl", "Update", "", ownLabels)}
		}, func(e *v1beta1.Cluster) bool {
			return reflect.DeepEqual(e.Labels, map[string]string{"env": "prod", "example.com/old": "x"})
		}},
		{"a CA of others", nil, func(e *v1beta1.Cluster) {
			e.Spec.Endpoints[0].CABundle = []byte("x")
			e.ManagedFields = []metav1.ManagedFieldsEntry{fields("kubectl-registry", "Update", "", ownCA)}
		}, func(e *v1beta1.Cluster) bool { return string(e.Spec.Endpoints[0].CABundle) == "x" }},
		{"a CA whose annotation is gone", nil, func(e *v1beta1.Cluster) {
			e.Spec.Endpoints[0].CABundle = []byte("x")
			e.ManagedFields = []metav1.ManagedFieldsEntry{fields(Manager, "Update", "", ownCA)}
		}, func(e *v1beta1.Cluster) bool { return e.Spec.Endpoints[0].CABundle == nil }},
		{"a CA whose ConfigMap is gone", func(c *clusterv1.Cluster) { c.Annotations = map[string]string{CAAnnotation: "none"} }, func(e *v1beta1.Cluster) {
			e.Spec.Endpoints[0].CABundle = []byte("x")
			e.ManagedFields = []metav1.ManagedFieldsEntry{fields(Manager, "Update", "", ownCA)}
		}, func(e *v1beta1.Cluster) bool { return string(e.Spec.Endpoints[0].CABundle) == "x" }},
		{"a version that another one has read", nil, func(e *v1beta1.Cluster) {
			e.Status = &v1beta1.ClusterStatus{Version: v1beta1.ClusterVersion{Kubernetes: "v1.36.0"}}
			e.ManagedFields = []metav1.ManagedFieldsEntry{fields("health", "Apply", "status", `{"f:status":{"f:version":{"f:kubernetes":{}}}}`)}
		}, func(e *v1beta1.Cluster) bool { return e.Status.Version.Kubernetes != "v1.37.1" }},
		{"kept, and back", nil, func(e *v1beta1.Cluster) { e.Annotations[KeepAnnotation] = ReasonClusterAPIRemoved },
			func(e *v1beta1.Cluster) bool { _, kept := e.Annotations[KeepAnnotation]; return !kept }},
		{"kept by a person", nil, func(e *v1beta1.Cluster) { e.Annotations[KeepAnnotation] = "please" },
			func(e *v1beta1.Cluster) bool { return e.Annotations[KeepAnnotation] == "please" }},
		{"being deleted", func(c *clusterv1.Cluster) { c.DeletionTimestamp = new(metav1.NewTime(begin)) }, nil,
			func(e *v1beta1.Cluster) bool { return joinedOf(e) == "True Deleting" }},
		{"paused", func(c *clusterv1.Cluster) {
			c.Spec.Paused = new(true)
			c.Spec.ControlPlaneEndpoint.Host = "10.0.0.1"
		}, nil, func(e *v1beta1.Cluster) bool { return e.Spec.Endpoints[0].URL == "https://10.0.0.1:6443" }},
		{"a long message", func(c *clusterv1.Cluster) { c.Status.Conditions[0].Message = strings.Repeat("é", 5000) }, nil,
			func(e *v1beta1.Cluster) bool { return len(ownConditions(e)[1].Message) == maxMessage+4 }},
	} {
		source := cluster("east")
		if test.source != nil {
			test.source(source)
		}
		entry := entryOf("east", "uid-east")
		if test.entry != nil {
			test.entry(entry)
		}
		b := newBench(t, nil, source, entry)
		b.must("east")
		if now := b.east(); !test.want(now) || !strings.HasPrefix(joinedOf(now), "True ") {
			t.Errorf("%s: %+v, labels %v, annotations %v, status %+v", test.reason, now.Spec, now.Labels, now.Annotations, now.Status)
		}
		if test.reason == "a version that another one has read" {
			continue // the fake replaces the status as a whole
		}
		if b.must("east"); len(b.writes()) > 0 {
			t.Errorf("%s: then written: %v", test.reason, b.writes())
		}
	}
}

func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// TestAuthorities takes certificates of a ConfigMap, and nothing else.
func TestAuthorities(t *testing.T) {
	cert, key := certificate(t)
	for _, test := range []struct{ reason, content, want, says string }{
		{"a certificate", cert, cert, ""},
		{"with a text", "# the CA\n" + cert, cert, ""},
		{"two", cert + cert, cert + cert, ""},
		{"a private key", cert + key, "", "private key"},
		{"nothing", "", "", "no certificate"},
		{"too much", strings.Repeat(cert, 200), "", "bytes"},
		{"none that can be read", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "", "ca.crt"},
	} {
		b := newBench(t, nil, cluster("east", func(c *clusterv1.Cluster) { c.Annotations = map[string]string{CAAnnotation: "ca"} }),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "ca"}, Data: map[string]string{"ca.crt": test.content}})
		b.must("east")
		if got := string(b.east().Spec.Endpoints[0].CABundle); got != test.want {
			t.Errorf("%s: %q", test.reason, got)
		}
		hold := b.held()[types.NamespacedName{Namespace: "a", Name: "east"}]
		if (hold.reason == HeldIncomplete) != (test.says != "") || !strings.Contains(hold.message, test.says) {
			t.Errorf("%s: held by %q: %s", test.reason, hold.reason, hold.message)
		}
	}
}

// TestHolds expects that no entry is made or changed, and that an event and the state of
// the function say why.
func TestHolds(t *testing.T) {
	elder := cluster("east", func(c *clusterv1.Cluster) {
		c.UID, c.Name, c.CreationTimestamp = "uid-elder", "elder", metav1.NewTime(begin.Add(-2*time.Hour))
	})
	one := func(c *Config) { c.Name = Template{"one-{namespace}"} }
	host := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "home"}, Spec: v1beta1.ClusterSpec{Manager: &v1beta1.Manager{Name: hostentry.Manager}, Endpoints: []v1beta1.Endpoint{{Name: "host", URL: "https://EAST.example.com:6443"}}}}
	moved := func(changes ...func(*v1beta1.Cluster)) *v1beta1.Cluster {
		return entryOf("east", "before", append(changes, func(e *v1beta1.Cluster) { e.Annotations[KeepAnnotation] = ReasonMoved })...)
	}
	for _, test := range []struct {
		reason  string
		config  func(*Config)
		objects []runtime.Object
		held    string
		says    string
	}{
		{"a person's entry", nil, []runtime.Object{&v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}}, HeldNameTaken, "was not made by this controller: if it is for the same cluster, kubectl annotate --overwrite clusters.clusterregistry.k8s.io east clusterregistry.k8s.io/adopt=uid-east"},
		{"another manager's entry", nil, []runtime.Object{&v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Annotations: map[string]string{AdoptAnnotation: "uid-east"}}, Spec: v1beta1.ClusterSpec{Manager: &v1beta1.Manager{Name: "fleet"}}}}, HeldNameTaken, `"fleet" manages it`},
		{"the host's entry of that name", nil, []runtime.Object{&v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Annotations: map[string]string{AdoptAnnotation: "uid-east"}}, Spec: v1beta1.ClusterSpec{Manager: &v1beta1.Manager{Name: hostentry.Manager}}}}, HeldNameTaken, "manages it"},
		{"made again", nil, []runtime.Object{entryOf("east", "before")}, HeldNameTaken, "with the UID before, which is gone"},
		{"made again, and another UID is approved", nil, []runtime.Object{entryOf("east", "before", func(e *v1beta1.Cluster) { e.Annotations[AdoptAnnotation] = "another" })}, HeldNameTaken, "which is gone"},
		{"moved, and back unverified", nil, []runtime.Object{moved(func(e *v1beta1.Cluster) { e.Spec.ID = "id" })}, HeldNameTaken, "which is gone"},
		{"moved, and back verified at another address", nil, []runtime.Object{moved(verified, func(e *v1beta1.Cluster) { e.Spec.Endpoints[0].URL = "https://west" })}, HeldNameTaken, "which is gone"},
		{"moved, and back verified before the last change", nil, []runtime.Object{moved(verified, func(e *v1beta1.Cluster) { e.Generation = 8 })}, HeldNameTaken, "which is gone"},
		{"moved, and back without an id", nil, []runtime.Object{moved(verified, func(e *v1beta1.Cluster) { e.Spec.ID = "" })}, HeldNameTaken, "which is gone"},
		{"deleted, and back verified", nil, []runtime.Object{entryOf("east", "before", verified)}, HeldNameTaken, "which is gone"},
		{"the entry of another one", func(c *Config) { c.Name = Template{"one"} }, []runtime.Object{elder, entryOf("one", "uid-elder", func(e *v1beta1.Cluster) { e.Spec.SourceRef.Name = "elder"; e.Annotations[AdoptAnnotation] = "uid-east" })}, HeldNameTaken, "is the entry of the Cluster a/elder"},
		{"an older one", one, []runtime.Object{elder}, HeldNameTaken, `the older Cluster a/elder gets the name "one-a"`},
		{"no valid name", func(c *Config) { c.Name = Template{"{name}.{name}"} }, nil, HeldInvalidName, `"east.east" is not the name of a cluster`},
		{"the host cluster", nil, []runtime.Object{host}, HeldHostCluster, `it is the host cluster, which is registered as "home"`},
	} {
		b := newBench(t, test.config, append(test.objects, cluster("east"))...)
		b.must("east")
		key := types.NamespacedName{Namespace: "a", Name: "east"}
		if hold := b.held()[key]; hold.reason != test.held || !strings.Contains(hold.message, test.says) || len(b.writes()) > 0 {
			t.Errorf("%s: held by %q: %s; written: %v", test.reason, hold.reason, hold.message, b.writes())
		}
		if state, message := b.state(); state != contract.FunctionRunning || !strings.Contains(message, "1 Clusters held: a/east: ") || !strings.Contains(message, test.says) {
			t.Errorf("%s: %s: %s", test.reason, state, message)
		}
		b.must("east") // and says it once
		events, err := b.host.EventsV1().Events("registries").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(events.Items) != 1 || events.Items[0].Reason != test.held || events.Items[0].Regarding.Name != "hub" {
			t.Errorf("%s: events %+v, %v", test.reason, events.Items, err)
		}
		// Once it is gone, it is held no more.
		b.lose(cluster("east"))
		if err := b.run("east"); err != nil || len(b.held()) > 0 {
			t.Errorf("%s: then %v, held %v", test.reason, err, b.held())
		}
	}
}

// verified is an entry whose id someone has read at its endpoint.
func verified(e *v1beta1.Cluster) {
	e.Spec.ID, e.Generation = "id", 7
	e.Status = &v1beta1.ClusterStatus{Conditions: []metav1.Condition{{Type: "IdentityVerified", Status: metav1.ConditionTrue, ObservedGeneration: 7}}}
}

// TestAdopt has an entry follow another Cluster.
func TestAdopt(t *testing.T) {
	for _, test := range []struct {
		reason string
		entry  *v1beta1.Cluster
	}{
		{"made again, and approved", entryOf("east", "before", func(e *v1beta1.Cluster) { e.Annotations[AdoptAnnotation] = "uid-east" })},
		{"of another namespace before, and approved", entryOf("east", "before", func(e *v1beta1.Cluster) {
			e.Spec.SourceRef.Namespace = "z"
			e.Annotations = map[string]string{AdoptAnnotation: "uid-east"}
		})},
		{"a person's, and approved", &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Annotations: map[string]string{AdoptAnnotation: "uid-east"}}, Spec: v1beta1.ClusterSpec{DisplayName: "East"}}},
		{"moved, and back with its id verified", entryOf("east", "before", verified, func(e *v1beta1.Cluster) { e.Annotations[KeepAnnotation] = ReasonMoved })},
	} {
		b := newBench(t, nil, cluster("east"), test.entry)
		display := test.entry.Spec.DisplayName
		b.must("east")
		now := b.east()
		if ref := now.Spec.SourceRef; ref == nil || ref.UID != "uid-east" || ref.Namespace != "a" || managerOf(now) != Manager || now.UID != test.entry.UID || now.Spec.DisplayName != display || joinedOf(now) != "True Imported" {
			t.Errorf("%s: %+v, %s", test.reason, now.Spec, joinedOf(now))
		}
		if !reflect.DeepEqual(now.Annotations, map[string]string{NamespaceAnnotation: string(nsUID)}) {
			t.Errorf("%s: annotations %v", test.reason, now.Annotations)
		}
		if b.must("east"); len(b.writes()) > 0 || len(b.held()) > 0 {
			t.Errorf("%s: then written: %v, held: %v", test.reason, b.writes(), b.held())
		}
	}
}

// TestNotImported expects no entry, and no complaint.
func TestNotImported(t *testing.T) {
	for reason, change := range map[string]func(*clusterv1.Cluster){
		"ignored":       func(c *clusterv1.Cluster) { c.Labels[IgnoreLabel] = "true" },
		"being moved":   func(c *clusterv1.Cluster) { c.Annotations = map[string]string{moveAnnotation: ""} },
		"being deleted": func(c *clusterv1.Cluster) { c.DeletionTimestamp = new(metav1.NewTime(begin)) },
	} {
		b := newBench(t, nil, cluster("east", change))
		if b.must("east"); len(b.writes()) > 0 || len(b.held()) > 0 {
			t.Errorf("%s: written: %v, held: %v", reason, b.writes(), b.held())
		}
	}
}

// TestHostClusterLater withholds the host cluster's address from an entry that was made
// before the Cluster had one.
func TestHostClusterLater(t *testing.T) {
	host := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "home"}, Spec: v1beta1.ClusterSpec{Manager: &v1beta1.Manager{Name: hostentry.Manager}, Endpoints: []v1beta1.Endpoint{{Name: "host", URL: "https://east.example.com:6443"}}}}
	b := newBench(t, nil, cluster("east"), entryOf("east", "uid-east", func(e *v1beta1.Cluster) { e.Spec.Endpoints = nil }), host)
	b.must("east")
	if hold := b.held()[types.NamespacedName{Namespace: "a", Name: "east"}]; len(b.east().Spec.Endpoints) != 0 || !strings.Contains(hold.message, `registered as "home"`) {
		t.Errorf("%+v, held: %+v", b.east().Spec, hold)
	}
}

// TestRefusedEntry holds a Cluster that the registry has no entry for.
func TestRefusedEntry(t *testing.T) {
	b := newBench(t, nil, cluster("east"))
	var answer error = apierrors.NewInvalid(v1beta1.SchemeGroupVersion.WithKind("Cluster").GroupKind(), "east", nil)
	b.registry.PrependReactor("create", "clusters", func(kubetesting.Action) (bool, runtime.Object, error) { return answer != nil, nil, answer })
	b.must("east")
	if hold := b.held()[types.NamespacedName{Namespace: "a", Name: "east"}]; hold.reason != HeldRefused {
		t.Errorf("held by %+v", hold)
	}
	answer = errors.New("away")
	if err := b.run("east"); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("%v", err)
	}
	answer = nil
	if b.must("east"); len(b.held()) > 0 || b.east() == nil {
		t.Errorf("held: %v", b.held())
	}
}

// TestRace changes an entry between what is known and what is written.
func TestRace(t *testing.T) {
	b := newBench(t, nil, cluster("east", func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint.Port = 443 }), entryOf("east", "uid-east"))
	b.registry.PrependReactor("get", "clusters", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, entryOf("east", "uid-east", func(e *v1beta1.Cluster) { e.UID = "made-again" }), nil
	})
	if err := b.run("east"); !apierrors.IsConflict(err) || len(b.writes()) > 0 {
		t.Errorf("%v, written: %v", err, b.writes())
	}
}

// TestSourceInAnotherVersion leaves an entry as it is that was made when the host cluster served
// another version of Cluster API: the group and the kind say what its object is.
func TestSourceInAnotherVersion(t *testing.T) {
	const older = "cluster.x-k8s.io/v1beta1"
	b := newBench(t, nil, cluster("east"), entryOf("east", "uid-east", func(entry *v1beta1.Cluster) { entry.Spec.SourceRef.APIVersion = older }))
	b.must("east")
	if entry := b.east(); joinedOf(entry) != "True Imported" || entry.Spec.SourceRef.APIVersion != older {
		t.Errorf("%s, of %+v", joinedOf(entry), entry.Spec.SourceRef)
	}
}
