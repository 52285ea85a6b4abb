package cluster

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/install"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// inProtobuf returns a cluster as a client of 2018 encodes it, with a cluster name
// in its metadata.
func inProtobuf(t *testing.T, scheme *runtime.Scheme, name string) []byte {
	t.Helper()
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	metadata, err := cluster.ObjectMeta.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if name != "" {
		metadata = protowire.AppendString(protowire.AppendTag(metadata, 15, protowire.BytesType), name)
	}
	raw := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), metadata)
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "clusterregistry.k8s.io/v1alpha1", Kind: "Cluster"}, Raw: raw}
	data, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	data = append([]byte("k8s\x00"), data...)
	if _, _, err := protobuf.NewSerializer(scheme, scheme).Decode(data, nil, nil); err != nil {
		t.Fatalf("the test's own encoding: %v", err)
	}
	return data
}

func TestClusterNamesAreRefused(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	const json, yaml, proto = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
	const head = `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":`
	for _, test := range []struct {
		reason, mediaType, data string
		refused                 bool
	}{
		{"none", json, head + `{"name":"east"}}`, false},
		{"an empty one, as some clients wrote", json, head + `{"name":"east","clusterName":""}}`, false},
		{"one", json, head + `{"name":"east","clusterName":"west"}}`, true},
		{"one of the older version", json, strings.Replace(head, "v1beta1", "v1alpha1", 1) + `{"name":"east","clusterName":"west"}}`, true},
		{"one that is no text", json, head + `{"name":"east","clusterName":1}}`, true},
		{"one beside metadata of another case and type", json, strings.Replace(head, `{`, `{"Metadata":[],`, 1) + `{"name":"east","clusterName":"west"}}`, true},
		{"one that other metadata would empty", json, strings.Replace(head, `{`, `{"METADATA":{"clusterName":""},`, 1) + `{"name":"east","clusterName":"west"},"Metadata":{"clusterName":""}}`, true},
		{"one that another case would empty", json, head + `{"name":"east","clusterName":"west","ClusterName":""}}`, true},
		{"one elsewhere", json, head + `{"name":"east","annotations":{"clusterName":"west"}}}`, false},
		{"none in YAML", yaml, "apiVersion: clusterregistry.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: east}\n", false},
		{"one in YAML", yaml, "apiVersion: clusterregistry.k8s.io/v1alpha1\nkind: Cluster\nmetadata:\n  clusterName: west\n", true},
		{"none in protobuf", proto, string(inProtobuf(t, scheme, "")), false},
		{"one in protobuf", proto, string(inProtobuf(t, scheme, "west")), true},
	} {
		codecs := RefuseClusterName(serializer.NewCodecFactory(scheme))
		info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), test.mediaType)
		if !ok {
			t.Fatalf("no %s", test.mediaType)
		}
		decoders := map[string]runtime.Decoder{"lenient": info.Serializer, "strict": info.StrictSerializer}
		for name, decoder := range decoders {
			object, _, err := codecs.DecoderToVersion(decoder, clusterregistry.SchemeGroupVersion).Decode([]byte(test.data), nil, nil)
			refused := err != nil && strings.Contains(err.Error(), "metadata.clusterName must not be set")
			if refused != test.refused || !refused && object == nil {
				t.Errorf("%s, %s: got %T, %v", test.reason, name, object, err)
			}
		}
	}
}

func TestWhatIsNoProtobufHasNoClusterName(t *testing.T) {
	for _, data := range []string{"", "x", "\x12", "\x12\x05", "\x12\x02\x0a\x00", "\x12\x04\x0a\x02\x7a\x00"} {
		if hasClusterNameInProtobuf([]byte(data)) {
			t.Errorf("%q has one", data)
		}
	}
}
