package install

import (
	"math/rand"
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
			for _, kind := range []string{"Cluster", "ClusterList"} {
				for range 100 {
					external, err := scheme.New(version.WithKind(kind))
					if err != nil {
						t.Fatal(err)
					}
					fill.Fill(external)
					scheme.Default(external)
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

// TestInteractiveModeHasADefault makes sure that a program without a mode gets the
// default, and that the mode of one that has it stays.
func TestInteractiveModeHasADefault(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codec := serializer.NewCodecFactory(scheme).UniversalDecoder(clusterregistry.SchemeGroupVersion)
	const written = `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","spec":{"access":[{"name":"none","exec":{"command":"x"}},{"name":"empty","exec":{"command":"x","interactiveMode":""}},{"name":"set","exec":{"command":"x","interactiveMode":"Never"}},{"name":"other"}]}}`
	object, err := runtime.Decode(codec, []byte(written))
	if err != nil {
		t.Fatal(err)
	}
	access := object.(*clusterregistry.Cluster).Spec.Access
	for i, want := range []clusterregistry.InteractiveMode{clusterregistry.InteractiveIfAvailable, clusterregistry.InteractiveIfAvailable, clusterregistry.InteractiveNever} {
		if got := access[i].Exec.InteractiveMode; got != want {
			t.Errorf("access %q has the mode %q, want %q", access[i].Name, got, want)
		}
	}
	if access[3].Exec != nil {
		t.Errorf("the default made a program: %+v", access[3].Exec)
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
