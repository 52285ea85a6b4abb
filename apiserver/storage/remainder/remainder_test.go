package remainder

import (
	"bytes"
	"io"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"sigs.k8s.io/randfill"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/install"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

// plain is the codec that a server without remainders would store with.
func plain(version schema.GroupVersion) runtime.Codec {
	proto := protobuf.NewSerializer(scheme, scheme)
	return serializer.NewCodecFactory(scheme).CodecForVersions(proto, proto, version, clusterregistry.SchemeGroupVersion)
}

var versions = []schema.GroupVersion{v1alpha1.SchemeGroupVersion, v1beta1.SchemeGroupVersion}

// annotated returns the annotations of a cluster as it is stored.
func annotated(t *testing.T, data []byte) map[string]string {
	t.Helper()
	raw, _, err := protobuf.NewSerializer(scheme, scheme).Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw.(metav1.Object).GetAnnotations()
}

func TestRemaindersAreAnnotationsInStorageOnly(t *testing.T) {
	const other = `{"v2":{"spec":{}}}`
	storage := codec{plain(v1alpha1.SchemeGroupVersion), form.V1alpha1}
	for _, test := range []struct {
		reason  string
		cluster clusterregistry.Cluster
		want    map[string]string
	}{
		{reason: "nothing remains"},
		{
			reason:  "others' annotations",
			cluster: clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}},
			want:    map[string]string{"a": "b"},
		},
		{
			reason:  "a newer release's remainder and no other annotation",
			cluster: clusterregistry.Cluster{Remainder: other},
			want:    map[string]string{clusterregistry.RemainderAnnotation: other},
		},
		{
			reason:  "a newer release's remainder beside another annotation",
			cluster: clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}, Remainder: other},
			want:    map[string]string{"a": "b", clusterregistry.RemainderAnnotation: other},
		},
		{
			reason:  "a newer release's remainder and ours",
			cluster: clusterregistry.Cluster{Spec: clusterregistry.ClusterSpec{DisplayName: "East"}, Remainder: other},
			want:    map[string]string{clusterregistry.RemainderAnnotation: `{"v1beta1":{"spec":{"displayName":"East"}},"v2":{"spec":{}}}`},
		},
	} {
		before := test.cluster.DeepCopy()
		data, err := runtime.Encode(storage, &test.cluster)
		if err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		if !apiequality.Semantic.DeepEqual(before, &test.cluster) {
			t.Errorf("%s: encoding changed the object, which caches share: %+v", test.reason, test.cluster)
		}
		if got := annotated(t, data); !maps.Equal(got, test.want) {
			t.Errorf("%s: stored with the annotations %v, want %v", test.reason, got, test.want)
		}
		for _, into := range []runtime.Object{nil, &clusterregistry.Cluster{}} {
			got, _, err := storage.Decode(data, nil, into)
			if err != nil || !apiequality.Semantic.DeepEqual(got, before) {
				t.Errorf("%s: read back as %+v, %v", test.reason, got, err)
			}
		}
	}
}

// TestNothingIsLostInStorage stores any cluster in either version, and reads it
// with the codec of either: servers that store different versions run together.
func TestNothingIsLostInStorage(t *testing.T) {
	codecs := serializer.NewCodecFactory(scheme)
	fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, func(serializer.CodecFactory) []any {
		return []any{
			func(c *clusterregistry.Cluster, r randfill.Continue) {
				r.FillNoCustom(c)
				c.Remainder = ""
				if r.Bool() {
					c.Remainder = `{"v2":{"n":1}}`
				}
				switch r.Intn(3) {
				case 0:
					form.FillV1beta1(&c.Spec)
				case 1:
					form.FillV1alpha1(&c.Spec)
				}
			},
		}
	}), rand.NewSource(1), codecs)
	for range 500 {
		cluster := &clusterregistry.Cluster{}
		fill.Fill(cluster)
		for _, version := range versions {
			data, err := runtime.Encode(codec{plain(version), version.Version}, cluster)
			if err != nil {
				t.Fatal(err)
			}
			for _, reader := range versions {
				got, err := runtime.Decode(codec{plain(reader), reader.Version}, data)
				if err != nil || !apiequality.Semantic.DeepEqual(got, cluster) {
					t.Fatalf("stored as %s: %v\n%s", version, err, diff.Diff(cluster, got))
				}
			}
		}
	}
}

// TestBundlesAreStoredOnce: a CA bundle that both forms have is not stored a second time with
// what is v1alpha1's own.
func TestBundlesAreStoredOnce(t *testing.T) {
	ca, other := bytes.Repeat([]byte("certificate "), 100), bytes.Repeat([]byte("another one "), 100)
	addresses := []clusterregistry.ServerAddressByClientCIDR{{ServerAddress: "east:6443"}} // without a scheme, which v1beta1 has no field for
	endpoint := func(ca []byte) clusterregistry.Endpoint {
		return clusterregistry.Endpoint{Name: "a", URL: "https://east:6443", CABundle: ca}
	}
	storage := codec{plain(v1beta1.SchemeGroupVersion), form.V1beta1}
	for _, test := range []struct {
		reason string
		plain  []byte
		rich   []clusterregistry.Endpoint
		// remains says that v1alpha1's own bundle is stored in the remainder.
		remains bool
	}{
		{"the same in both forms", ca, []clusterregistry.Endpoint{endpoint(ca)}, false},
		{"the same in all endpoints", ca, []clusterregistry.Endpoint{endpoint(ca), endpoint(ca)}, false},
		{"both together", slices.Concat(ca, []byte("\n"), other), []clusterregistry.Endpoint{endpoint(ca), endpoint(other)}, false},
		{"one of two", ca, []clusterregistry.Endpoint{endpoint(ca), endpoint(other)}, true},
		{"another one", other, []clusterregistry.Endpoint{endpoint(ca)}, true},
		{"no endpoint", ca, nil, true},
		{"none in v1alpha1", nil, []clusterregistry.Endpoint{endpoint(ca)}, false},
		{"none", nil, []clusterregistry.Endpoint{endpoint(nil)}, false},
	} {
		cluster := &clusterregistry.Cluster{Spec: clusterregistry.ClusterSpec{Endpoints: test.rich, KubernetesAPIEndpoints: clusterregistry.KubernetesAPIEndpoints{CABundle: test.plain, ServerEndpoints: addresses}}}
		before := cluster.DeepCopy()
		data, err := runtime.Encode(storage, cluster)
		if err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		if !apiequality.Semantic.DeepEqual(before, cluster) {
			t.Errorf("%s: encoding changed the object, which caches share: %+v", test.reason, cluster)
		}
		remainder := annotated(t, data)[clusterregistry.RemainderAnnotation]
		if got := strings.Contains(remainder, "caBundle"); got != test.remains || remainder == "" {
			t.Errorf("%s: a bundle is stored in the remainder: %t, want %t: %.200s", test.reason, got, test.remains, remainder)
		}
		got, err := runtime.Decode(storage, data)
		if err != nil || !apiequality.Semantic.DeepEqual(got, before) {
			t.Errorf("%s: %v\n%s", test.reason, err, diff.Diff(before, got))
		}
	}
}

// TestAnUnchangedClusterHasTheSameBytes makes sure that a write that changes
// nothing of a cluster writes nothing.
func TestAnUnchangedClusterHasTheSameBytes(t *testing.T) {
	plainly := &clusterregistry.Cluster{Spec: clusterregistry.ClusterSpec{
		KubernetesAPIEndpoints: clusterregistry.KubernetesAPIEndpoints{ServerEndpoints: []clusterregistry.ServerAddressByClientCIDR{{ServerAddress: "east:6443"}}, CABundle: []byte("x")},
		AuthInfo:               clusterregistry.AuthInfo{Providers: []clusterregistry.AuthProviderConfig{{Config: map[string]string{"a": "b", "c": "d", "e": "f"}}}},
	}}
	form.FillV1beta1(&plainly.Spec)
	richly := plainly.DeepCopy()
	richly.Spec.Endpoints[0].ProxyURL = "https://proxy"
	richly.Remainder = `{"v2":{"b":1,"a":2}}`
	for _, cluster := range []*clusterregistry.Cluster{plainly, richly} {
		for _, version := range versions {
			storage := codec{plain(version), version.Version}
			data, err := runtime.Encode(storage, cluster)
			if err != nil {
				t.Fatal(err)
			}
			if cluster == plainly && version == v1alpha1.SchemeGroupVersion && len(annotated(t, data)) > 0 {
				t.Error("what v1alpha1 holds alone has a remainder")
			}
			got, err := runtime.Decode(storage, data)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := runtime.Encode(storage, got); err != nil || !bytes.Equal(again, data) {
				t.Errorf("%s: %v\n%q\n%q", version, err, data, again)
			}
		}
	}
}

func TestARemainderThatIsNone(t *testing.T) {
	storage := codec{plain(v1alpha1.SchemeGroupVersion), form.V1alpha1}
	raw := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Annotations: map[string]string{clusterregistry.RemainderAnnotation: "x"}}}
	raw.APIVersion, raw.Kind = v1alpha1.SchemeGroupVersion.String(), "Cluster"
	data, err := runtime.Encode(protobuf.NewSerializer(scheme, scheme), raw)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.Decode(storage, data); err == nil || !strings.Contains(err.Error(), "cluster east: its stored annotation clusterregistry.k8s.io/remainder can't be read") {
		t.Errorf("got %v", err)
	}
}

// cacheable counts what it is asked to keep.
type cacheable struct {
	runtime.Object
	asked []runtime.Identifier
}

func (c *cacheable) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, to io.Writer) error {
	c.asked = append(c.asked, id)
	return encode(c.Object, to)
}

func (c *cacheable) GetObject() runtime.Object { return c.Object }

// TestCachesDontMixCodecs makes sure that an encoding that a cache keeps for
// this codec is never taken for one of the codec below, which clients get.
func TestCachesDontMixCodecs(t *testing.T) {
	below := plain(v1alpha1.SchemeGroupVersion)
	object := &cacheable{Object: &clusterregistry.Cluster{Remainder: `{"v2":{}}`}}
	var out bytes.Buffer
	if err := (codec{below, form.V1alpha1}).Encode(object, &out); err != nil {
		t.Fatal(err)
	}
	if len(object.asked) != 1 || object.asked[0] == below.Identifier() || !bytes.Contains(out.Bytes(), []byte(clusterregistry.RemainderAnnotation)) {
		t.Errorf("kept as %q: %s", object.asked, out.String())
	}
}

type options struct{ version schema.GroupVersion }

func (o options) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{StorageConfig: &storagebackend.ConfigForResource{Config: storagebackend.Config{Codec: plain(o.version), EncodeVersioner: o.version}}}, nil
}

func TestOnlyClustersHaveRemainders(t *testing.T) {
	for resource, want := range map[schema.GroupResource]bool{
		clusterregistry.Resource("clusters"):                           true,
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}: false,
	} {
		for _, version := range versions {
			got, err := Getter(options{version}).GetRESTOptions(resource, nil)
			if err != nil {
				t.Fatal(err)
			}
			wrapped, ok := got.StorageConfig.Codec.(codec)
			if ok != want || ok && wrapped.version != version.Version {
				t.Errorf("%s in %s: the codec is %T of %q", resource, version, got.StorageConfig.Codec, wrapped.version)
			}
		}
	}
}
