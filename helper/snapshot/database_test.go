package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestDatabase finds what bbolt has written, in trees of all sizes, with values that
// take several pages.
func TestDatabase(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in each run
	for _, count := range []int{1, 2, 10, 100, 1000, 20000} {
		keys, meta, newest := map[string][]byte{}, map[string][]byte{}, uint64(0)
		for i := range count {
			revision := random.Uint64N(1 << 40)
			newest = max(newest, revision)
			keys[string(key(revision))] = make([]byte, random.IntN(100))
			meta[fmt.Sprintf("%d", random.Uint32())] = make([]byte, random.IntN(100))
			if i%100 == 50 {
				keys[string(key(revision))] = make([]byte, 10000)
			}
		}
		compacted := newest + 1 + random.Uint64N(100)
		for _, test := range []struct {
			meta map[string][]byte
			want uint64
		}{
			{map[string][]byte{}, newest},
			{map[string][]byte{"scheduledCompactRev": key(compacted)}, compacted},
			{map[string][]byte{"finishedCompactRev": key(compacted)}, compacted},
		} {
			for name, value := range meta {
				test.meta[name] = value
			}
			got, err := revision(put(t, t.TempDir(), "a.db", snapshotOf(t, buckets{"alarm": {}, "key": keys, "meta": test.meta, "members": {"a": nil}})))
			if err != nil || got != int64(test.want) { //nolint:gosec // less than 1<<41
				t.Errorf("%d keys: %d, %v; want %d", count, got, err, test.want)
			}
		}
	}
}

// TestDamagedPages reads snapshots whose checksum is right and whose pages don't fit
// together.
func TestDamagedPages(t *testing.T) {
	const pageSize = 4096
	many := map[string][]byte{}
	for revision := range uint64(1000) {
		many[string(key(revision+2))] = make([]byte, 32)
	}
	whole := snapshotOf(t, buckets{"key": many, "meta": {"a": key(1)}})
	whole = whole[:len(whole)-sha256.Size]
	order := binary.NativeEndian
	eachElement := func(content []byte, page int, change func(element []byte)) {
		for i := range int(order.Uint16(content[page+10:])) {
			change(content[page+16+16*i:])
		}
	}
	// inline changes the header of each page that is within a leaf.
	inline := func(content []byte, page int, change func(element, header []byte)) {
		eachElement(content, page, func(element []byte) {
			value := order.Uint32(element[4:]) + order.Uint32(element[8:])
			if order.Uint32(element)&bucketElement != 0 && order.Uint64(element[value:]) == 0 {
				change(element, element[value+16:])
			}
		})
	}
	for _, test := range []struct {
		reason string
		kind   uint16 // of the pages that are damaged
		damage func(content []byte, page int)
	}{
		{"a branch that leads to itself", branchPage, func(content []byte, page int) {
			eachElement(content, page, func(element []byte) { order.PutUint64(element[8:], uint64(page/pageSize)) }) //nolint:gosec // small
		}},
		{"a branch that leads out of the file", branchPage, func(content []byte, page int) {
			eachElement(content, page, func(element []byte) { order.PutUint64(element[8:], 1<<60) })
		}},
		{"meta data among the keys", branchPage, func(content []byte, page int) {
			eachElement(content, page, func(element []byte) { order.PutUint64(element[8:], 0) })
		}},
		{"a page that is another", leafPage, func(content []byte, page int) { content[page]++ }},
		{"a page that goes on behind the end", leafPage, func(content []byte, page int) { order.PutUint32(content[page+12:], 1<<31) }},
		{"more elements than there is room for", leafPage, func(content []byte, page int) { order.PutUint16(content[page+10:], 0xffff) }},
		{"a key behind the end", leafPage, func(content []byte, page int) {
			eachElement(content, page, func(element []byte) { order.PutUint32(element[4:], 1<<31) })
		}},
		{"a page within a page that is a branch", leafPage, func(content []byte, page int) {
			inline(content, page, func(_, header []byte) { order.PutUint16(header[8:], branchPage) })
		}},
		{"a page within a page that is longer than that", leafPage, func(content []byte, page int) {
			inline(content, page, func(element, _ []byte) { order.PutUint32(element[12:], 0x18) })
		}},
		{"no buckets", leafPage, func(content []byte, page int) {
			eachElement(content, page, func(element []byte) { order.PutUint32(element, 0) })
		}},
	} {
		content, damaged := append([]byte{}, whole...), false
		for page := 2 * pageSize; page < len(whole); page += pageSize {
			if order.Uint16(whole[page+8:]) == test.kind {
				test.damage(content, page)
				damaged = true
			}
		}
		sum := sha256.Sum256(content)
		got, err := revision(put(t, t.TempDir(), "a.db", append(content, sum[:]...)))
		if !damaged || !errors.Is(err, errDamaged) {
			t.Errorf("%s: revision %d, %v", test.reason, got, err)
		}
	}
}

// TestLongKey reads a page with room for a key that is longer than bbolt stores any: a
// damaged length decides how much memory is taken.
func TestLongKey(t *testing.T) {
	for length, damaged := range map[uint32]bool{1: false, maxKey: false, maxKey + 1: true} {
		page := make([]byte, 3*maxKey)
		binary.NativeEndian.PutUint16(page[8:], leafPage)
		binary.NativeEndian.PutUint16(page[10:], 1)
		binary.NativeEndian.PutUint32(page[pageHeader+4:], pageElement)
		binary.NativeEndian.PutUint32(page[pageHeader+8:], length)
		db := &database{file: bytes.NewReader(page), size: int64(len(page)), pageSize: 4096}
		if _, _, err := db.elements(region{0, db.size}); errors.Is(err, errDamaged) != damaged || err != nil && !damaged {
			t.Errorf("a key of %d bytes: %v", length, err)
		}
	}
}
