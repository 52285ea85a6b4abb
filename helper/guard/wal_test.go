package guard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// frame is a record as etcd writes it.
func frame(kind uint64, crc uint32, content []byte) []byte {
	var message []byte
	message = protowire.AppendVarint(protowire.AppendTag(message, 1, protowire.VarintType), kind)
	message = protowire.AppendVarint(protowire.AppendTag(message, 2, protowire.VarintType), uint64(crc))
	if content != nil {
		message = protowire.AppendBytes(protowire.AppendTag(message, 3, protowire.BytesType), content)
	}
	length, padding := uint64(len(message)), -len(message)&7
	if padding != 0 {
		length |= uint64(0x80|padding) << 56
	}
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, length), message, make([]byte, padding))
}

func metadata(id identity) []byte {
	content, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: new(id.member), ClusterID: new(id.cluster)})
	if err != nil {
		panic(err)
	}
	return content
}

// segment is the head of a segment after one that ended with a checksum.
func segment(previous uint32, id identity) []byte {
	content := metadata(id)
	return slices.Concat(frame(checksumType, previous, nil), frame(metadataType, crc32.Update(previous, castagnoli, content), content), make([]byte, 512))
}

func TestReadIdentity(t *testing.T) {
	ids := identity{cluster: 0x8e9e05c52164694d, member: 0xcdf818194e3a8c32}
	content, whole := metadata(ids), segment(0, ids)
	for _, test := range []struct {
		reason  string
		segment []byte
		want    string // in the error
	}{
		{"the first segment", whole, ""},
		{"a later one, with a checksum before it", segment(0xfeedbeef, ids), ""},
		{"nothing", nil, "ends too early"},
		{"cut in a length", whole[:4], "ends too early"},
		{"cut between two records", whole[:len(frame(checksumType, 0, nil))], "ends too early"},
		{"cut in a record", whole[:len(whole)-512-8], "ends too early"},
		{"allocated but never written", make([]byte, 512), "of 0 bytes"},
		{"a length beyond what a head has", bytes.Repeat([]byte{0x7f}, 512), "a record of type 4 is expected"},
		{"no protobuf message", append([]byte{4, 0, 0, 0, 0, 0, 0, 0}, 0xff, 0xff, 0xff, 0xff), "can't be understood"},
		{"metadata first", whole[len(frame(checksumType, 0, nil)):], "a record of type 4 is expected, and found is type 1"},
		{"no metadata", slices.Concat(frame(checksumType, 0, nil), frame(2, 0, content)), "a record of type 1 is expected, and found is type 2"},
		{"a wrong checksum", slices.Concat(frame(checksumType, 0, nil), frame(metadataType, 1, content)), "checksum"},
		{"metadata without IDs", segment(0, identity{}), "names cluster 0, member ID 0"},
	} {
		got, err := readIdentity(bytes.NewReader(test.segment))
		switch {
		case test.want == "" && (err != nil || got != ids):
			t.Errorf("%s: %+v, %v", test.reason, got, err)
		case test.want != "" && (!errors.Is(err, errFormat) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %+v, %v; want %q", test.reason, got, err, test.want)
		}
	}
}

// FuzzReadIdentity holds the decoder to errors, whatever a disk may return.
func FuzzReadIdentity(f *testing.F) {
	f.Add(segment(0, identity{1, 2}))
	f.Fuzz(func(t *testing.T, content []byte) {
		if _, err := readIdentity(bytes.NewReader(content)); err != nil && !errors.Is(err, errFormat) {
			t.Error(err)
		}
	})
}
