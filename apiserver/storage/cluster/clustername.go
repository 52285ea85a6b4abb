package cluster

import (
	"bytes"
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// RefuseClusterName lets a server's serializer refuse what has a
// metadata.clusterName. Kubernetes has no such field any more and would drop it,
// at most with a warning; who sets it means something that is not stored.
func RefuseClusterName(serializer runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	return refusing{serializer}
}

type refusing struct{ runtime.NegotiatedSerializer }

// DecoderToVersion returns the serializer's decoder, which refuses first.
func (r refusing) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return r.NegotiatedSerializer.DecoderToVersion(refuser{decoder}, version)
}

type refuser struct{ runtime.Decoder }

// Decode refuses what has a metadata.clusterName.
func (r refuser) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := r.Decoder.Decode(data, defaults, into)
	if err != nil && !runtime.IsStrictDecodingError(err) {
		return object, kind, err
	}
	if kind != nil && kind.Group == clusterregistry.GroupName && hasClusterName(data) {
		return nil, kind, errors.New("metadata.clusterName must not be set: the name of a cluster is metadata.name, and spec.id of v1beta1 says which cluster it is")
	}
	return object, kind, err
}

// hasClusterName reports whether an object, in any encoding, has a
// metadata.clusterName. It reads on only where there can be one, and what is JSON it reads
// as that: a parser of YAML takes 1,000 bytes of memory for each of the body.
func hasClusterName(data []byte) bool {
	if content, ok := bytes.CutPrefix(data, []byte("k8s\x00")); ok {
		return hasClusterNameInProtobuf(content)
	}
	if !bytes.Contains(data, []byte("clusterName")) {
		return false
	}
	var object struct {
		Metadata named `json:"metadata"`
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(json.Unmarshal(data, &object), &syntax) {
		_ = yaml.Unmarshal(data, &object) // what is neither was refused by the decoder
	}
	return bool(object.Metadata)
}

// named is whether metadata have a clusterName. Package json takes keys in any case for the
// same one, so whichever comes last must not hide another.
type named bool

// UnmarshalJSON reads metadata. Those of another type have no clusterName.
func (n *named) UnmarshalJSON(data []byte) error {
	var metadata struct {
		ClusterName given `json:"clusterName"`
	}
	_ = json.Unmarshal(data, &metadata)
	*n = *n || named(metadata.ClusterName)
	return nil
}

// given is whether a value is anything but empty.
type given bool

// UnmarshalJSON reads a value of any type.
func (g *given) UnmarshalJSON(data []byte) error {
	*g = *g || string(data) != `""` && string(data) != "null"
	return nil
}

// hasClusterNameInProtobuf looks for it where generated code of 2018 put it: in a
// runtime.Unknown the raw object is field 2, in that the metadata are field 1, and
// in those the name is field 15.
func hasClusterNameInProtobuf(data []byte) bool {
	for _, wanted := range []protowire.Number{2, 1, 15} {
		if data = protobufField(data, wanted); len(data) == 0 {
			return false
		}
	}
	return true
}

// protobufField returns the content of a message's field, or nothing.
func protobufField(message []byte, wanted protowire.Number) []byte {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if number == wanted && kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(message)
			return content
		}
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return nil
		}
		message = message[n:]
	}
	return nil
}
