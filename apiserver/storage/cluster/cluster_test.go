package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// TestCategories keeps the names of the operator's CRD its own: kubectl prefers a
// category to a singular name.
func TestCategories(t *testing.T) {
	if in, is := any(&REST{}).(rest.CategoriesProvider); is {
		t.Errorf("clusters are in the categories %q", in.Categories())
	}
}

// expiring returns a certificate in PEM that expires at the given time.
func expiring(t *testing.T, at time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.AddDate(-1, 0, 0), NotAfter: at}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestRow(t *testing.T) {
	soon, later := expiring(t, now.AddDate(0, 0, 30)), expiring(t, now.AddDate(5, 0, 0))
	for _, test := range []struct {
		reason  string
		cluster clusterregistry.Cluster
		want    []any
	}{
		{reason: "nothing is known", want: []any{"east", "", "", "", "1d", "", "", ""}},
		{
			reason: "everything is known",
			cluster: clusterregistry.Cluster{
				Spec: clusterregistry.ClusterSpec{
					KubernetesAPIEndpoints: clusterregistry.KubernetesAPIEndpoints{
						ServerEndpoints: []clusterregistry.ServerAddressByClientCIDR{{ClientCIDR: "10.0.0.0/8", ServerAddress: "10.0.0.1"}, {ServerAddress: "east.example"}, {ClientCIDR: "::/0", ServerAddress: "::1"}},
						CABundle:        append(slices.Clone(later), soon...),
					},
					AuthInfo: clusterregistry.AuthInfo{Providers: []clusterregistry.AuthProviderConfig{{Type: clusterregistry.AuthProviderType{Name: "oidc"}}, {Name: "no type"}}},
				},
				Status: &clusterregistry.ClusterStatus{Version: clusterregistry.ClusterVersion{Kubernetes: "v1.37.1"}, Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse}}},
			},
			want: []any{"east", "10.0.0.1 (+2)", "v1.37.1", "False", "1d", "10.0.0.0/8,::/0", "oidc", "30d"},
		},
		{
			reason:  "a controller that reports Available",
			cluster: clusterregistry.Cluster{Status: &clusterregistry.ClusterStatus{Conditions: []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}}}},
			want:    []any{"east", "", "", "True", "1d", "", "", ""},
		},
		{
			reason:  "controllers that report both",
			cluster: clusterregistry.Cluster{Status: &clusterregistry.ClusterStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse}, {Type: "Available", Status: metav1.ConditionTrue}}}},
			want:    []any{"east", "", "", "False", "1d", "", "", ""},
		},
		{
			reason:  "a CA that has expired",
			cluster: clusterregistry.Cluster{Spec: clusterregistry.ClusterSpec{KubernetesAPIEndpoints: clusterregistry.KubernetesAPIEndpoints{CABundle: expiring(t, now.AddDate(0, 0, -1))}}},
			want:    []any{"east", "", "", "", "1d", "", "", "expired"},
		},
	} {
		got := row(&test.cluster, "east", "1d", now)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.reason, got, test.want)
		}
		if len(got) != len(columns) {
			t.Errorf("%s: %d cells for %d columns", test.reason, len(got), len(columns))
		}
	}
}

// TestExpiryIsCheap bounds what a row costs: parsing this certificate as a whole
// takes 40 allocations, in a list of all clusters once for each.
func TestExpiryIsCheap(t *testing.T) {
	bundle := expiring(t, now.AddDate(0, 0, 30))
	if n := testing.AllocsPerRun(100, func() { caExpiry(bundle, now) }); n > 25 {
		t.Errorf("the expiry of one certificate takes %v allocations", n)
	}
	for _, der := range [][]byte{nil, []byte("x"), {0x30, 0x00}, {0x30, 0x02, 0x30, 0x00}} {
		if end := notAfter(der); !end.IsZero() {
			t.Errorf("%x ends at %s", der, end)
		}
	}
}

func TestRowOfV1beta1(t *testing.T) {
	seen := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	for _, test := range []struct {
		reason  string
		cluster clusterregistry.Cluster
		want    []any
	}{
		{reason: "nothing is known", want: []any{"east", "", "", "", "1d", "", "", "", "", ""}},
		{
			reason: "everything is known",
			cluster: clusterregistry.Cluster{
				Spec: clusterregistry.ClusterSpec{
					DisplayName: "East", ID: "one", ClusterSet: "team", Manager: &clusterregistry.Manager{Name: "fleet"},
					Endpoints: []clusterregistry.Endpoint{{Name: "main", URL: "https://east"}, {Name: "other", URL: "https://other"}},
				},
				Status: &clusterregistry.ClusterStatus{
					Version:    clusterregistry.ClusterVersion{Kubernetes: "v1.37.1"},
					Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse}, {Type: "Available", Status: metav1.ConditionTrue}},
					Reporters:  []clusterregistry.Reporter{{Name: "a", LastSeen: seen(time.Hour)}, {Name: "b", LastSeen: seen(time.Minute)}, {Name: "c", LastSeen: seen(3 * time.Hour)}, {Name: "d"}},
				},
			},
			want: []any{"east", "East", "v1.37.1", "True", "1d", "one", "https://east", "fleet", "team", "60s"},
		},
	} {
		got := betaRow(&test.cluster, "east", "1d", now)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.reason, got, test.want)
		}
		if len(got) != len(betaColumns) {
			t.Errorf("%s: %d cells for %d columns", test.reason, len(got), len(betaColumns))
		}
	}
}

// TestExactValuesUseAnIndex makes sure that what match promises is what the
// indexers hold, or such lists would come out empty.
func TestExactValuesUseAnIndex(t *testing.T) {
	cluster := &clusterregistry.Cluster{
		Spec:   clusterregistry.ClusterSpec{ID: "v1", ClusterSet: "v1"},
		Status: &clusterregistry.ClusterStatus{Version: clusterregistry.ClusterVersion{Kubernetes: "v1"}},
	}
	cluster.Label()
	predicates := map[string]storage.SelectionPredicate{
		storage.LabelIndex(clusterregistry.ClusterSetLabel): match(labels.SelectorFromSet(labels.Set{clusterregistry.ClusterSetLabel: "v1"}), fields.Everything()),
	}
	for name := range selectable {
		predicates[storage.FieldIndex(name)] = match(labels.Everything(), fields.OneTermEqualSelector(name, "v1"))
	}
	for name, predicate := range predicates {
		values := predicate.MatcherIndex(t.Context())
		if len(values) != 1 || values[0].IndexName != name || values[0].Value != "v1" {
			t.Fatalf("the index is %+v, want %s", values, name)
		}
		index, ok := (*indexers())[name]
		if !ok {
			t.Fatalf("there is no index %s", name)
		}
		if got, err := index(cluster); err != nil || !slices.Equal(got, []string{"v1"}) {
			t.Errorf("the index %s of a cluster is %v, %v", name, got, err)
		}
	}
}

func TestWhatAWriteMayChange(t *testing.T) {
	old := clusterregistry.Cluster{
		ObjectMeta: metav1.ObjectMeta{Generation: 3, Labels: map[string]string{"a": "b"}},
		Status:     &clusterregistry.ClusterStatus{Version: clusterregistry.ClusterVersion{Kubernetes: "v1"}},
	}
	old.Remainder = "kept"
	changed := old.DeepCopy()
	changed.Remainder = "another's"
	changed.Labels = map[string]string{"c": "d"}
	changed.Spec.DisplayName = "East"
	changed.Status.Version.Kubernetes = "v2"

	main := changed.DeepCopy()
	strategy{}.PrepareForUpdate(t.Context(), main, &old)
	if main.Status.Version.Kubernetes != "v1" || main.Generation != 4 || main.Labels["c"] != "d" || main.Remainder != "kept" || main.Spec.DisplayName != "East" {
		t.Errorf("through the main resource: %+v", main)
	}
	status := changed.DeepCopy()
	statusStrategy{}.PrepareForUpdate(t.Context(), status, &old)
	if status.Status.Version.Kubernetes != "v2" || status.Generation != 3 || status.Labels["a"] != "b" || status.Remainder != "kept" || status.Spec.DisplayName != "" {
		t.Errorf("through the status: %+v", status)
	}
	created := changed.DeepCopy()
	created.Remainder = "a client's"
	strategy{}.PrepareForCreate(t.Context(), created)
	if created.Status != nil || created.Remainder != "" || created.Generation != 1 {
		t.Errorf("created: %+v", created)
	}
	metadataOnly := old.DeepCopy()
	metadataOnly.Labels = nil
	strategy{}.PrepareForUpdate(t.Context(), metadataOnly, &old)
	if metadataOnly.Generation != 3 {
		t.Errorf("a label counts as a new generation: %d", metadataOnly.Generation)
	}
}
