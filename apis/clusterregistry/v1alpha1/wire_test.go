package v1alpha1

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// descriptors are the messages as cluster-registry v0.0.4 numbered them, with
// the fields that status gained, written down independently of generated code.
// Of the metadata only the name is needed (ObjectMeta 1).
func descriptors(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	scalar := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	}
	text := func(name string, number int32) *descriptorpb.FieldDescriptorProto {
		return scalar(name, number, descriptorpb.FieldDescriptorProto_TYPE_STRING)
	}
	message := func(name string, number int32, of string) *descriptorpb.FieldDescriptorProto {
		f := scalar(name, number, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE)
		f.TypeName = proto.String("." + of)
		return f
	}
	repeated := func(name string, number int32, of string) *descriptorpb.FieldDescriptorProto {
		f := message(name, number, of)
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		return f
	}
	typ := func(name string, fields ...*descriptorpb.FieldDescriptorProto) *descriptorpb.DescriptorProto {
		return &descriptorpb.DescriptorProto{Name: &name, Field: fields}
	}
	config := typ("AuthProviderConfig", text("name", 1), message("type", 2, "AuthProviderType"), repeated("config", 3, "AuthProviderConfig.ConfigEntry"))
	config.NestedType = []*descriptorpb.DescriptorProto{{
		Name: proto.String("ConfigEntry"), Field: []*descriptorpb.FieldDescriptorProto{text("key", 1), text("value", 2)}, Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
	}}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("v004.proto"),
		MessageType: []*descriptorpb.DescriptorProto{
			typ("ObjectMeta", text("name", 1)),
			typ("ListMeta", text("resourceVersion", 2)),
			typ("Cluster", message("metadata", 1, "ObjectMeta"), message("spec", 2, "ClusterSpec"), message("status", 3, "ClusterStatus")),
			typ("ClusterSpec", message("kubernetesApiEndpoints", 1, "KubernetesAPIEndpoints"), message("authInfo", 2, "AuthInfo")),
			typ("KubernetesAPIEndpoints", repeated("serverEndpoints", 1, "ServerAddressByClientCIDR"), scalar("caBundle", 2, descriptorpb.FieldDescriptorProto_TYPE_BYTES)),
			typ("ServerAddressByClientCIDR", text("clientCIDR", 1), text("serverAddress", 2)),
			typ("AuthInfo", repeated("providers", 1, "AuthProviderConfig")),
			config,
			typ("AuthProviderType", text("name", 1)),
			typ("ClusterStatus", repeated("conditions", 1, "Condition"), message("version", 2, "ClusterVersion")),
			typ("Condition", text("type", 1), text("status", 2), text("reason", 5), text("message", 6)),
			typ("ClusterVersion", text("kubernetes", 1)),
			typ("ClusterList", message("metadata", 1, "ListMeta"), repeated("items", 2, "Cluster")),
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// wire is a message that Kubernetes' protobuf serializer reads and writes.
type wire interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// TestProtobufIsThatOfV004 compares with an encoder that knows nothing but the
// field numbers, in both directions.
func TestProtobufIsThatOfV004(t *testing.T) {
	file := descriptors(t)
	for _, test := range []struct {
		message, fixture string
		ours             wire
	}{
		{message: "Cluster", fixture: "testdata/full.json", ours: &Cluster{}},
		{message: "Cluster", fixture: "testdata/empty.json", ours: &Cluster{}},
		{message: "Cluster", fixture: "testdata/status.json", ours: &Cluster{}},
		{message: "ClusterList", fixture: "testdata/list.json", ours: &ClusterList{}},
	} {
		t.Run(test.fixture, func(t *testing.T) {
			fixture, err := os.ReadFile(test.fixture)
			if err != nil {
				t.Fatal(err)
			}
			descriptor := file.Messages().ByName(protoreflect.Name(test.message))
			theirs := dynamicpb.NewMessage(descriptor)
			if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(fixture, theirs); err != nil {
				t.Fatal(err)
			}
			encoded, err := proto.Marshal(theirs)
			if err != nil {
				t.Fatal(err)
			}
			if err := test.ours.Unmarshal(encoded); err != nil {
				t.Fatal(err)
			}
			fromJSON := reflect.New(reflect.TypeOf(test.ours).Elem()).Interface()
			if err := json.Unmarshal(fixture, fromJSON); err != nil {
				t.Fatal(err)
			}
			ours, err := json.Marshal(test.ours)
			if err != nil {
				t.Fatal(err)
			}
			if want, err := json.Marshal(withoutKind(fromJSON)); err != nil || string(ours) != string(want) {
				t.Errorf("read from protobuf:\n%s\nread from JSON:\n%s\n%v", ours, want, err)
			}
			back, err := test.ours.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			again := dynamicpb.NewMessage(descriptor)
			if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(back, again); err != nil {
				t.Fatal(err)
			}
			reread := reflect.New(reflect.TypeOf(test.ours).Elem()).Interface().(wire)
			if encoded, err = proto.Marshal(again); err != nil {
				t.Fatal(err)
			}
			if err := reread.Unmarshal(encoded); err != nil {
				t.Fatal(err)
			}
			if got, err := json.Marshal(reread); err != nil || string(got) != string(ours) {
				t.Errorf("through the other encoder and back:\n%s\nwant:\n%s\n%v", got, ours, err)
			}
		})
	}
}

func withoutKind(object any) any {
	switch o := object.(type) {
	case *Cluster:
		o.Kind, o.APIVersion = "", ""
	case *ClusterList:
		o.Kind, o.APIVersion = "", ""
		for i := range o.Items {
			o.Items[i].Kind, o.Items[i].APIVersion = "", ""
		}
	}
	return object
}
