package install

import (
	"math/rand"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// TestRoundTrips proves that nothing is lost on the way from any version to the
// hub and back, in JSON, YAML and protobuf. What a version can't hold of the hub,
// package remainder stores, whose tests prove the other way round.
func TestRoundTrips(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), codecs)
	for encoding, serializer := range map[string]runtime.Serializer{
		"JSON":     json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true}),
		"YAML":     json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true}),
		"protobuf": protobuf.NewSerializer(scheme, scheme),
	} {
		for _, version := range []schema.GroupVersion{v1alpha1.SchemeGroupVersion, v1beta1.SchemeGroupVersion} {
			codec := codecs.CodecForVersions(serializer, serializer, version, clusterregistry.SchemeGroupVersion)
			kinds := []string{"Cluster", "ClusterList"}
			if version == v1beta1.SchemeGroupVersion {
				kinds = append(kinds, "ClusterHeartbeat", "ClusterHeartbeatList")
			}
			for _, kind := range kinds {
				for range 100 {
					external, err := scheme.New(version.WithKind(kind))
					if err != nil {
						t.Fatal(err)
					}
					fill.Fill(external)
					external.GetObjectKind().SetGroupVersionKind(version.WithKind(kind))
					roundTrip(t, encoding+" "+version.Version+" "+kind, codec, serializer, external)
				}
			}
		}
	}
}

// roundTrip encodes an external object, decodes it to the hub, encodes that, and
// decodes it as it is.
func roundTrip(t *testing.T, what string, codec runtime.Codec, serializer runtime.Serializer, external runtime.Object) {
	t.Helper()
	data, err := runtime.Encode(serializer, external)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	hub, err := runtime.Decode(codec, data)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if data, err = runtime.Encode(codec, hub); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	back, err := runtime.Decode(serializer, data)
	if err != nil || !apiequality.Semantic.DeepEqual(external, back) {
		t.Fatalf("%s: %v\n%s", what, err, diff.Diff(external, back))
	}
}

// TestNothingIsFilledIn decodes objects in which every list has an entry and every value is
// empty: no version has a default. One in the entry of a list would be a difference for ever
// to tools that compare lists as a whole.
func TestNothingIsFilledIn(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	for _, version := range []schema.GroupVersion{v1alpha1.SchemeGroupVersion, v1beta1.SchemeGroupVersion} {
		for kind := range scheme.KnownTypes(version) {
			object, err := scheme.New(version.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			hollow(reflect.ValueOf(object).Elem())
			want := object.DeepCopyObject()
			if scheme.Default(object); !apiequality.Semantic.DeepEqual(object, want) {
				t.Errorf("%s %s:\n%s", version, kind, diff.Diff(want, object))
			}
		}
	}
}

// hollow sets each pointer and one entry of each list of a value, and leaves the rest empty.
func hollow(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		hollow(value.Elem())
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		hollow(value.Index(0))
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				hollow(value.Field(i))
			}
		}
	}
}

// TestConversionInPlace does what admission does for a webhook that asks for
// another version than the request's: the cluster goes there and back into the
// same object, and loses nothing but what the webhook changed.
func TestConversionInPlace(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme))
	for _, version := range []schema.GroupVersion{v1alpha1.SchemeGroupVersion, v1beta1.SchemeGroupVersion} {
		for range 100 {
			cluster := &clusterregistry.Cluster{}
			fill.Fill(cluster)
			want := cluster.DeepCopy()
			shown, err := scheme.New(version.WithKind("Cluster"))
			if err != nil {
				t.Fatal(err)
			}
			if err := scheme.Convert(cluster, shown, nil); err != nil {
				t.Fatal(err)
			}
			shown.(metav1.Object).SetLabels(map[string]string{"by": "webhook"})
			want.Labels = map[string]string{"by": "webhook"}
			if err := scheme.Convert(shown, cluster, nil); err != nil || !apiequality.Semantic.DeepEqual(cluster, want) {
				t.Fatalf("by %s: %v\n%s", version, err, diff.Diff(want, cluster))
			}
		}
	}
}
