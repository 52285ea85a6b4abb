package bundle

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/install"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apiserver/storage/remainder"
)

var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

// options lead to etcd, in protobuf of a version.
type options struct{ version schema.GroupVersion }

func (o options) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	proto := protobuf.NewSerializer(scheme, scheme)
	below := serializer.NewCodecFactory(scheme).CodecForVersions(proto, proto, o.version, clusterregistry.SchemeGroupVersion)
	return generic.RESTOptions{StorageConfig: &storagebackend.ConfigForResource{Config: storagebackend.Config{Codec: below, EncodeVersioner: o.version}}}, nil
}

// stored returns the codec that clusters of a version are stored with, with and without
// this package.
func stored(t testing.TB, version schema.GroupVersion) (with, without runtime.Codec) {
	t.Helper()
	var codecs []runtime.Codec
	for _, getter := range []generic.RESTOptionsGetter{Getter(remainder.Getter(options{version})), remainder.Getter(options{version})} {
		options, err := getter.GetRESTOptions(clusterregistry.Resource("clusters"), &clusterregistry.Cluster{})
		if err != nil {
			t.Fatal(err)
		}
		codecs = append(codecs, options.StorageConfig.Codec)
	}
	return codecs[0], codecs[1]
}

// authority returns a bundle of a length, in an array of its own.
func authority(name string, length int) []byte {
	return bytes.Repeat([]byte(name), length)[:length]
}

// cluster has an endpoint for each bundle, and both forms.
func cluster(name string, bundles ...[]byte) *clusterregistry.Cluster {
	c := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i, bundle := range bundles {
		c.Spec.Endpoints = append(c.Spec.Endpoints, clusterregistry.Endpoint{Name: fmt.Sprintf("endpoint-%d", i+1), URL: fmt.Sprintf("https://%s:%d", name, 6443+i), CABundle: bundle})
	}
	form.FillV1alpha1(&c.Spec)
	return c
}

func encode(t testing.TB, codec runtime.Codec, object runtime.Object) []byte {
	t.Helper()
	data, err := runtime.Encode(codec, object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decode(t testing.TB, codec runtime.Codec, data []byte) *clusterregistry.Cluster {
	t.Helper()
	object, err := runtime.Decode(codec, data)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*clusterregistry.Cluster)
}

// TestBundlesAreShared has equal bundles of clusters, of their endpoints and of their
// forms be one in memory, and leaves what is read and written as it is without.
func TestBundlesAreShared(t *testing.T) {
	for _, version := range []schema.GroupVersion{v1alpha1.SchemeGroupVersion, v1beta1.SchemeGroupVersion} {
		with, without := stored(t, version)
		one, two := cluster("one", authority("a", 2000), authority("a", 2000)), cluster("two", authority("a", 2000), authority("b", 2000))
		var decoded []*clusterregistry.Cluster
		for _, c := range []*clusterregistry.Cluster{one, two, cluster("short", authority("c", least-1)), cluster("none")} {
			data := encode(t, with, c)
			if !bytes.Equal(data, encode(t, without, c)) {
				t.Errorf("%s: %s is written otherwise", version, c.Name)
			}
			got := decode(t, with, data)
			if !apiequality.Semantic.DeepEqual(got, decode(t, without, data)) || !apiequality.Semantic.DeepEqual(got.Spec, c.Spec) {
				t.Errorf("%s: %s is read otherwise: %v", version, c.Name, got)
			}
			decoded = append(decoded, got)
		}
		shared := unsafe.SliceData(decoded[0].Spec.KubernetesAPIEndpoints.CABundle)
		for what, bundle := range map[string][]byte{
			"the first endpoint's": decoded[0].Spec.Endpoints[0].CABundle, "the second one's": decoded[0].Spec.Endpoints[1].CABundle, "another cluster's": decoded[1].Spec.Endpoints[0].CABundle,
		} {
			if unsafe.SliceData(bundle) != shared {
				t.Errorf("%s: %s bundle is there twice", version, what)
			}
		}
		if unsafe.SliceData(decoded[1].Spec.Endpoints[1].CABundle) == shared {
			t.Errorf("%s: two bundles are one", version)
		}
		// What is converted from there, as answers to lists and watches are, shares it.
		for _, to := range []schema.GroupVersion{v1alpha1.SchemeGroupVersion, v1beta1.SchemeGroupVersion} {
			out, err := scheme.UnsafeConvertToVersion(decoded[0], to)
			if err != nil {
				t.Fatal(err)
			}
			var bundle []byte
			switch c := out.(type) {
			case *v1alpha1.Cluster:
				bundle = c.Spec.KubernetesAPIEndpoints.CABundle
			case *v1beta1.Cluster:
				bundle = c.Spec.Endpoints[0].CABundle
			}
			if unsafe.SliceData(bundle) != shared {
				t.Errorf("%s: converted to %s, the bundle is there twice", version, to)
			}
		}
	}
}

// TestChangesAreNotShared changes a cluster in each way that the server does, and looks
// after another one with the same bundle.
func TestChangesAreNotShared(t *testing.T) {
	codec, _ := stored(t, v1beta1.SchemeGroupVersion)
	bundle := func() []byte { return authority("a", 2000) }
	other := decode(t, codec, encode(t, codec, cluster("other", bundle())))
	data := encode(t, codec, cluster("one", bundle()))
	for _, test := range []struct {
		reason string
		change func(c *clusterregistry.Cluster)
	}{
		{"a copy has bytes of its own", func(c *clusterregistry.Cluster) {
			copied := c.DeepCopy()
			copied.Spec.Endpoints[0].CABundle[0], copied.Spec.KubernetesAPIEndpoints.CABundle[1] = 'x', 'x'
		}},
		{"an append doesn't write behind a bundle", func(c *clusterregistry.Cluster) {
			at := &c.Spec.Endpoints[0].CABundle
			if cap(*at) != len(*at) {
				t.Errorf("a bundle of %d bytes has room for %d", len(*at), cap(*at))
			}
			*at = append(*at, "x"...)
			(*at)[0] = 'x'
		}},
		{"another bundle takes its place", func(c *clusterregistry.Cluster) { c.Spec.Endpoints[0].CABundle = authority("b", 2000) }},
		{"another object is decoded into it", func(c *clusterregistry.Cluster) {
			if err := runtime.DecodeInto(codec, encode(t, codec, cluster("two", authority("b", 2000))), c); err != nil {
				t.Error(err)
			}
		}},
		{"a client's object is decoded into its form", func(c *clusterregistry.Cluster) {
			versioned, err := scheme.UnsafeConvertToVersion(c, v1beta1.SchemeGroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			sent, err := (&v1beta1.Cluster{Spec: v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{{CABundle: authority("b", 1000)}}}}).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			into := versioned.(*v1beta1.Cluster)
			into.Reset() // as every decoder does
			if err := into.Unmarshal(sent); err != nil {
				t.Error(err)
			}
		}},
		{"a write of v1alpha1 is completed", func(c *clusterregistry.Cluster) {
			written := &clusterregistry.Cluster{Spec: clusterregistry.ClusterSpec{KubernetesAPIEndpoints: clusterregistry.KubernetesAPIEndpoints{
				ServerEndpoints: c.Spec.KubernetesAPIEndpoints.ServerEndpoints, CABundle: append(bundle(), "x"...),
			}}}
			form.Restore(form.V1alpha1, written, c)
		}},
		{"bundles are put together", func(c *clusterregistry.Cluster) {
			c.Spec.Endpoints = append(c.Spec.Endpoints, clusterregistry.Endpoint{Name: "b", URL: "https://b", CABundle: authority("b", 2000)})
			form.FillV1alpha1(&c.Spec)
		}},
	} {
		test.change(decode(t, codec, data))
		if !bytes.Equal(other.Spec.Endpoints[0].CABundle, bundle()) || !bytes.Equal(other.Spec.KubernetesAPIEndpoints.CABundle, bundle()) {
			t.Fatalf("%s: another cluster's has become %.20q", test.reason, other.Spec.Endpoints[0].CABundle)
		}
		if got := decode(t, codec, data).Spec.Endpoints[0].CABundle; !bytes.Equal(got, bundle()) {
			t.Fatalf("%s: what is decoded from then on has %.20q", test.reason, got)
		}
	}
}

// TestGetter leaves other resources alone.
func TestGetter(t *testing.T) {
	for resource, wrapped := range map[schema.GroupResource]bool{
		clusterregistry.Resource("clusters"): true, clusterregistry.Resource("clustersets"): false, {Group: "other", Resource: "clusters"}: false,
	} {
		below, err := options{v1beta1.SchemeGroupVersion}.GetRESTOptions(resource, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Getter(options{v1beta1.SchemeGroupVersion}).GetRESTOptions(resource, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, is := got.StorageConfig.Codec.(codec); is != wrapped {
			t.Errorf("%s: wrapped: %v", resource, is)
		}
		if got.StorageConfig.Codec.Identifier() != below.StorageConfig.Codec.Identifier() {
			t.Errorf("%s: the codec says that it writes something else", resource)
		}
	}
}
