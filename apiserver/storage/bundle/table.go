package bundle

import (
	"bytes"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"unsafe"
	"weak"
)

// least is how long a bundle is that is worth an entry. Any certificate is longer.
const least = 128

// table knows the bundles that are in use, and keeps none of them in memory itself: an
// entry goes when the last cluster that has its bundle is gone.
type table struct {
	seed maphash.Seed

	mu      sync.Mutex
	entries map[uint64]entry // by a hash of the content
}

// entry is a bundle, as long as it is in use.
type entry struct {
	first weak.Pointer[byte]
	size  int
}

func newTable() *table {
	return &table{seed: maphash.MakeSeed(), entries: map[uint64]entry{}}
}

// share returns the bundle in use that is equal to the given one, or else a copy of that,
// which is in use from now on. An append to it copies it once more.
func (t *table) share(bundle []byte) []byte {
	if len(bundle) < least {
		return bundle
	}
	key := maphash.Bytes(t.seed, bundle)
	t.mu.Lock()
	defer t.mu.Unlock()
	if used := t.entries[key].bytes(); used != nil {
		if bytes.Equal(used, bundle) {
			return used
		}
		return bundle // another one with the same hash
	}
	// Who decoded it may hold it, too, and it may be a part of something larger.
	own := slices.Clip(bytes.Clone(bundle))
	t.entries[key] = entry{weak.Make(&own[0]), len(own)}
	runtime.AddCleanup(&own[0], t.forget, key)
	return own
}

// bytes returns the bundle, or nil if it is in use no more.
func (e entry) bytes() []byte {
	first := e.first.Value()
	if first == nil {
		return nil
	}
	return unsafe.Slice(first, e.size)
}

// forget drops the entry of a bundle that was in use, unless another one has taken its
// place since.
func (t *table) forget(key uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[key].first.Value() == nil {
		delete(t.entries, key)
	}
}
