package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned/scheme"
	"github.com/clusterregistry/operator/e2e/framework"
)

// storedVersion is the version that this release writes to etcd.
const storedVersion = "v1beta1"

// fixture reads one cluster as a release stores it.
func fixture(t *testing.T, release string, into runtime.Object) {
	t.Helper()
	content, err := os.ReadFile("testdata/stored-by-" + release + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}

// raw returns what is in etcd at a cluster's key, and the version of the key.
func raw(t *testing.T, etcd *framework.Etcd, name string) ([]byte, int64) {
	t.Helper()
	content, err := etcd.Client.Get(t.Context(), key(name))
	if err != nil || len(content.Kvs) != 1 {
		t.Fatalf("the raw value of %s: %v, %v", name, err, content)
	}
	return content.Kvs[0].Value, content.Kvs[0].ModRevision
}

// envelope returns the API version that a stored value says it has: the value is
// "k8s\x00" and a runtime.Unknown in protobuf.
func envelope(t *testing.T, value []byte) string {
	t.Helper()
	data, ok := bytes.CutPrefix(value, []byte("k8s\x00"))
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(data); err != nil || !ok {
		t.Fatalf("the value is no protobuf of Kubernetes: %v: %q", err, value)
	}
	return unknown.APIVersion
}

// TestStored reads one cluster as this release and the ones before and after it
// store it. Each shows the same, and a write that changes nothing makes of it
// what this release stores.
func TestStored(t *testing.T) {
	etcd := framework.StartEtcd(t, 1)
	_, _, config := independentOn(t, etcd)
	olds, news, ctx := clustersOf(t, config), betaOf(t, config), t.Context()
	var old v1alpha1.Cluster
	var renewed v1beta1.Cluster
	fixture(t, "v0.2.0", &old)
	fixture(t, "v0.3.0", &renewed)
	protobuf := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	encode := func(object runtime.Object) []byte {
		data, err := runtime.Encode(protobuf, object)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	shown := func(reason string) {
		t.Helper()
		a, err := olds.Get(ctx, "east", metav1.GetOptions{})
		if err != nil || !apiequality.Semantic.DeepEqual(a.Spec, old.Spec) || !apiequality.Semantic.DeepEqual(a.Status, old.Status) || len(a.Annotations) > 0 {
			t.Errorf("%s, v1alpha1 shows %v\n%s", reason, err, diff.Diff(old, a))
		}
		b, err := news.Get(ctx, "east", metav1.GetOptions{})
		defaulted := renewed.DeepCopy() // defaults are shown and not stored
		v1beta1.SetObjectDefaults_Cluster(defaulted)
		if err != nil || !apiequality.Semantic.DeepEqual(b.Spec, defaulted.Spec) || !apiequality.Semantic.DeepEqual(b.Status, renewed.Status) || len(b.Annotations) > 0 {
			t.Errorf("%s, v1beta1 shows %v\n%s", reason, err, diff.Diff(defaulted, b))
		}
	}
	put := map[string]func(){
		"v1alpha1": func() {
			c, err := olds.Get(ctx, "east", metav1.GetOptions{})
			if err == nil {
				_, err = olds.Update(ctx, c, metav1.UpdateOptions{FieldManager: "test"})
			}
			if err != nil {
				t.Error(err)
			}
		},
		"v1beta1": func() {
			c, err := news.Get(ctx, "east", metav1.GetOptions{})
			if err == nil {
				_, err = news.Update(ctx, c, metav1.UpdateOptions{FieldManager: "test"})
			}
			if err != nil {
				t.Error(err)
			}
		},
	}
	for through, write := range put {
		if _, err := etcd.Client.Put(ctx, key("east"), string(encode(&old))); err != nil {
			t.Fatal(err)
		}
		write() // the first write makes its manager known
		managers, err := news.Get(ctx, "east", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		asOld, asNew := old.DeepCopy(), renewed.DeepCopy()
		asOld.ManagedFields, asNew.ManagedFields = managers.ManagedFields, managers.ManagedFields
		values := map[string][]byte{"v1alpha1": encode(asOld), "v1beta1": encode(asNew)}
		for version, value := range values {
			reason := "stored as " + version
			response, err := etcd.Client.Put(ctx, key("east"), string(value))
			if err != nil {
				t.Fatal(err)
			}
			shown(reason)
			write()
			reason += " and written through " + through
			shown(reason)
			got, revision := raw(t, etcd, "east")
			if envelope(t, got) != "clusterregistry.k8s.io/"+storedVersion || !bytes.Equal(got, values[storedVersion]) {
				t.Errorf("%s, it is\n%q\nwant\n%q", reason, got, values[storedVersion])
			}
			if written := revision != response.Header.Revision; written == (version == storedVersion) {
				t.Errorf("%s: whether etcd was written is %t", reason, written)
			}
		}
	}
}

// TestARewriteRenewsV1alpha1 does to a cluster that v0.3.0 stored what the end of
// an upgrade does: an update without a change is written, and v1alpha1 then shows
// what clients of 2018 can use. A report of a status does not.
func TestARewriteRenewsV1alpha1(t *testing.T) {
	etcd := framework.StartEtcd(t, 1)
	_, _, config := independentOn(t, etcd)
	olds, news, ctx := clustersOf(t, config), betaOf(t, config), t.Context()
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "u", Generation: 1}, Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://east.example:6443", ProxyURL: "http://proxy"}}}}
	c.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("Cluster"))
	store(ctx, t, etcd, c)
	shown := func(after, want string) {
		t.Helper()
		seen, err := olds.Get(ctx, "east", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(seen.Spec.KubernetesAPIEndpoints.ServerEndpoints); err != nil || string(got) != want || seen.Generation != 1 {
			t.Errorf("after %s, v1alpha1 shows %s, %v, of generation %d", after, got, err, seen.Generation)
		}
	}
	const before = `[{"serverAddress":"east.example:6443"}]`
	const after = `[{"clientCIDR":"0.0.0.0/0","serverAddress":"https://east.example:6443"},{"clientCIDR":"::/0","serverAddress":"https://east.example:6443"}]`
	shown("v0.3.0's write", before)
	seen, err := news.Get(ctx, "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen.Status = &v1beta1.ClusterStatus{Version: v1beta1.ClusterVersion{Kubernetes: "v1.37.1"}}
	if seen, err = news.UpdateStatus(ctx, seen, metav1.UpdateOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
	shown("a report", before)
	rewritten, err := news.Update(ctx, seen, metav1.UpdateOptions{FieldManager: "test"})
	if err != nil || rewritten.ResourceVersion == seen.ResourceVersion {
		t.Fatalf("the rewrite is not written: %v", err)
	}
	shown("a rewrite", after)
	if again, err := news.Update(ctx, rewritten, metav1.UpdateOptions{FieldManager: "test"}); err != nil || again.ResourceVersion != rewritten.ResourceVersion {
		t.Errorf("a second rewrite is written: %v", err)
	}
}
