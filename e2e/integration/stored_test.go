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

// fixture reads one cluster as it is stored in a version of the API.
func fixture(t *testing.T, version string, into runtime.Object) {
	t.Helper()
	content, err := os.ReadFile("testdata/stored-as-" + version + ".json")
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

// TestStored reads one cluster as releases store it. Each form shows the same, and a write
// that changes nothing makes of it what this server stores.
func TestStored(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) { testStored(t, version) })
	}
}

func testStored(t *testing.T, storedVersion string) {
	t.Parallel()
	etcd := framework.StartEtcd(t, 1)
	_, _, config := independentOn(t, etcd, "--storage-version="+storedVersion)
	alphas, betas, ctx := clustersOf(t, config), betaOf(t, config), t.Context()
	var alpha v1alpha1.Cluster
	var beta v1beta1.Cluster
	fixture(t, "v1alpha1", &alpha)
	fixture(t, "v1beta1", &beta)
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
		a, err := alphas.Get(ctx, "east", metav1.GetOptions{})
		if err != nil || !apiequality.Semantic.DeepEqual(a.Spec, alpha.Spec) || !apiequality.Semantic.DeepEqual(a.Status, alpha.Status) || len(a.Annotations) > 0 {
			t.Errorf("%s, v1alpha1 shows %v\n%s", reason, err, diff.Diff(alpha, a))
		}
		b, err := betas.Get(ctx, "east", metav1.GetOptions{})
		if err != nil || !apiequality.Semantic.DeepEqual(b.Spec, beta.Spec) || !apiequality.Semantic.DeepEqual(b.Status, beta.Status) || len(b.Annotations) > 0 {
			t.Errorf("%s, v1beta1 shows %v\n%s", reason, err, diff.Diff(beta, b))
		}
	}
	put := map[string]func(){
		"v1alpha1": func() {
			c, err := alphas.Get(ctx, "east", metav1.GetOptions{})
			if err == nil {
				_, err = alphas.Update(ctx, c, metav1.UpdateOptions{FieldManager: "test"})
			}
			if err != nil {
				t.Error(err)
			}
		},
		"v1beta1": func() {
			c, err := betas.Get(ctx, "east", metav1.GetOptions{})
			if err == nil {
				_, err = betas.Update(ctx, c, metav1.UpdateOptions{FieldManager: "test"})
			}
			if err != nil {
				t.Error(err)
			}
		},
	}
	for through, write := range put {
		if _, err := etcd.Client.Put(ctx, key("east"), string(encode(&alpha))); err != nil {
			t.Fatal(err)
		}
		write() // the first write makes its manager known
		managers, err := betas.Get(ctx, "east", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		asAlpha, asBeta := alpha.DeepCopy(), beta.DeepCopy()
		asAlpha.ManagedFields, asBeta.ManagedFields = managers.ManagedFields, managers.ManagedFields
		values := map[string][]byte{"v1alpha1": encode(asAlpha), "v1beta1": encode(asBeta)}
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
