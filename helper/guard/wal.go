package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// The format is that of etcd 3.6 and 3.7, go.etcd.io/etcd/server/v3/storage/wal.
// It is decoded by hand: that module would bring all of etcd's server along.

// Types of records at the head of each segment, in this order.
const (
	checksumType = 4
	metadataType = 1
)

// maxRecord bounds what is read, in bytes: the first records are below 50.
const maxRecord = 4096

// errFormat is in all errors about content, as opposed to reading.
var errFormat = errors.New("the write-ahead log can't be understood")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// walRecord is walpb.Record without its type.
type walRecord struct {
	crc  uint32
	data []byte
}

// readIdentity reads the head of a segment: the checksum that the segment before
// ended with, and metadata, which is etcdserverpb.Metadata.
func readIdentity(segment io.Reader) (identity, error) {
	previous, err := readWALRecord(segment, checksumType)
	if err != nil {
		return identity{}, err
	}
	metadata, err := readWALRecord(segment, metadataType)
	if err != nil {
		return identity{}, err
	}
	if crc32.Update(previous.crc, castagnoli, metadata.data) != metadata.crc {
		return identity{}, fmt.Errorf("%w: the checksum of its metadata is wrong", errFormat)
	}
	numbers, _, err := decode(metadata.data)
	if err != nil {
		return identity{}, err
	}
	id := identity{member: numbers[1], cluster: numbers[2]}
	if id.member == 0 || id.cluster == 0 {
		return identity{}, fmt.Errorf("%w: its metadata names cluster %x, member ID %x", errFormat, id.cluster, id.member)
	}
	return id, nil
}

// readWALRecord reads a record, which must be of the given type: the length in
// 8 bytes, a protobuf message, and zeros up to a multiple of 8 bytes. The top
// byte of the length is 0x80 plus the number of zeros if there are any.
func readWALRecord(segment io.Reader, kind uint64) (walRecord, error) {
	var head [8]byte
	if err := readFull(segment, head[:]); err != nil {
		return walRecord{}, err
	}
	length := binary.LittleEndian.Uint64(head[:])
	size, padding := length&(1<<56-1), uint64(0)
	if length>>63 == 1 {
		padding = length >> 56 & 7
	}
	if size == 0 || size > maxRecord {
		return walRecord{}, fmt.Errorf("%w: a record of type %d is expected, and found is one of %d bytes", errFormat, kind, size)
	}
	frame := make([]byte, size+padding)
	if err := readFull(segment, frame); err != nil {
		return walRecord{}, err
	}
	numbers, texts, err := decode(frame[:size])
	if err != nil {
		return walRecord{}, err
	}
	if numbers[1] != kind {
		return walRecord{}, fmt.Errorf("%w: a record of type %d is expected, and found is type %d", errFormat, kind, numbers[1])
	}
	return walRecord{crc: uint32(numbers[2]), data: texts[3]}, nil
}

func readFull(r io.Reader, buffer []byte) error {
	_, err := io.ReadFull(r, buffer)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends too early", errFormat)
	}
	return err
}

// decode returns the numbers and the byte strings of a protobuf message by
// their field's number.
func decode(message []byte) (numbers map[protowire.Number]uint64, texts map[protowire.Number][]byte, err error) {
	numbers, texts = map[protowire.Number]uint64{}, map[protowire.Number][]byte{}
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, nil, fmt.Errorf("%w: %w", errFormat, protowire.ParseError(n))
		}
		message = message[n:]
		switch kind {
		case protowire.VarintType:
			numbers[field], n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			texts[field], n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return nil, nil, fmt.Errorf("%w: %w", errFormat, protowire.ParseError(n))
		}
		message = message[n:]
	}
	return numbers, texts, nil
}
