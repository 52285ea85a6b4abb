package remainder

import (
	"bytes"
	"io"
	"maps"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/install"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// plain is the codec that a server without remainders would store with.
func plain() runtime.Codec {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)
}

func TestRemaindersAreAnnotationsInStorageOnly(t *testing.T) {
	below := plain()
	storage := codec{below}
	for _, test := range []struct {
		reason    string
		cluster   clusterregistry.Cluster
		annotated map[string]string
	}{
		{reason: "nothing remains"},
		{
			reason:    "others' annotations",
			cluster:   clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}},
			annotated: map[string]string{"a": "b"},
		},
		{
			reason:    "a remainder and no other annotation",
			cluster:   clusterregistry.Cluster{Remainder: `{"spec":{}}`},
			annotated: map[string]string{clusterregistry.RemainderAnnotation: `{"spec":{}}`},
		},
		{
			reason:    "a remainder beside another annotation",
			cluster:   clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}, Remainder: "x"},
			annotated: map[string]string{"a": "b", clusterregistry.RemainderAnnotation: "x"},
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
		raw := &v1alpha1.Cluster{}
		if err := runtime.DecodeInto(serializer.NewCodecFactory(runtime.NewScheme()).UniversalDeserializer(), data, raw); err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		if !maps.Equal(raw.Annotations, test.annotated) {
			t.Errorf("%s: stored with the annotations %v, want %v", test.reason, raw.Annotations, test.annotated)
		}
		for _, into := range []runtime.Object{nil, &clusterregistry.Cluster{}} {
			got, _, err := storage.Decode(data, nil, into)
			if err != nil || !apiequality.Semantic.DeepEqual(got, before) {
				t.Errorf("%s: read back as %+v, %v", test.reason, got, err)
			}
		}
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
	below := plain()
	object := &cacheable{Object: &clusterregistry.Cluster{Remainder: "x"}}
	var out bytes.Buffer
	if err := (codec{below}).Encode(object, &out); err != nil {
		t.Fatal(err)
	}
	if len(object.asked) != 1 || object.asked[0] == below.Identifier() || !bytes.Contains(out.Bytes(), []byte(clusterregistry.RemainderAnnotation)) {
		t.Errorf("kept as %q: %s", object.asked, out.String())
	}
}

type options struct{ codec runtime.Codec }

func (o options) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{StorageConfig: &storagebackend.ConfigForResource{Config: storagebackend.Config{Codec: o.codec}}}, nil
}

func TestOnlyClustersHaveRemainders(t *testing.T) {
	below := options{plain()}
	for resource, want := range map[schema.GroupResource]bool{
		clusterregistry.Resource("clusters"):                           true,
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}: false,
	} {
		got, err := Getter(below).GetRESTOptions(resource, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, wrapped := got.StorageConfig.Codec.(codec); wrapped != want {
			t.Errorf("%s: the codec is %T", resource, got.StorageConfig.Codec)
		}
	}
}
