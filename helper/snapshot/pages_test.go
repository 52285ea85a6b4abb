package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"
)

// TestDamagedPages reads snapshots whose checksum is right and whose pages are
// not a tree, where bbolt would use up the memory.
func TestDamagedPages(t *testing.T) {
	const pageSize = 4096
	many := map[string][]byte{}
	for revision := range uint64(1000) {
		many[string(key(revision+2))] = make([]byte, 32)
	}
	whole := snapshotOf(t, buckets{"key": many, "meta": {"a": key(1)}})
	whole = whole[:len(whole)-sha256.Size]
	kindOf := func(content []byte, at int) uint16 { return binary.NativeEndian.Uint16(content[at+8:]) }
	for _, test := range []struct {
		reason string
		damage func(content []byte, at int) // a page
		of     uint16
	}{
		{"a branch that leads to itself", func(content []byte, at int) {
			for element := range int(binary.NativeEndian.Uint16(content[at+10:])) {
				binary.NativeEndian.PutUint64(content[at+16+16*element+8:], uint64(at/pageSize)) //nolint:gosec // small
			}
		}, branchPage},
		{"a branch that leads out of the file", func(content []byte, at int) {
			binary.NativeEndian.PutUint64(content[at+16+8:], 1<<60)
		}, branchPage},
		{"a page of meta data among the keys", func(content []byte, at int) {
			binary.NativeEndian.PutUint64(content[at+16+8:], 0)
		}, branchPage},
		{"more elements than the file has bytes", func(content []byte, at int) {
			copy(content[len(content)-pageSize:], content[at:at+pageSize])
			binary.NativeEndian.PutUint16(content[len(content)-pageSize+10:], 0xffff)
			binary.NativeEndian.PutUint64(content[at+16+8:], uint64(len(content)/pageSize-1)) //nolint:gosec // small
		}, branchPage},
		{"a bucket within a page that leads to other pages", func(content []byte, at int) {
			for element := at + 16; element < at+16+16*int(binary.NativeEndian.Uint16(content[at+10:])); element += 16 {
				if binary.NativeEndian.Uint32(content[element:])&bucketElement == 0 {
					continue
				}
				value := element + int(binary.NativeEndian.Uint32(content[element+4:])+binary.NativeEndian.Uint32(content[element+8:]))
				if binary.NativeEndian.Uint64(content[value:]) == 0 {
					binary.NativeEndian.PutUint16(content[value+16+8:], branchPage)
				}
			}
		}, leafPage},
	} {
		content := append([]byte{}, whole...)
		for at := 0; at < len(whole); at += pageSize {
			if kindOf(whole, at) == test.of {
				test.damage(content, at)
			}
		}
		sum := sha256.Sum256(content)
		if got, err := revision(put(t, t.TempDir(), "a.db", append(content, sum[:]...))); !errors.Is(err, errDamaged) {
			t.Errorf("%s: revision %d, %v", test.reason, got, err)
		}
	}
}
