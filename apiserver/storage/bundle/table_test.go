package bundle

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// TestTableForgets has entries go with the bundles, and not before.
func TestTableForgets(t *testing.T) {
	table := newTable()
	kept := table.share(authority("kept", 300))
	for i := range 1000 {
		table.share(authority(fmt.Sprint("gone", i), 300))
	}
	known := func() int {
		table.mu.Lock()
		defer table.mu.Unlock()
		return len(table.entries)
	}
	for end := time.Now().Add(10 * time.Second); known() > 1; {
		if time.Now().After(end) {
			t.Fatalf("%d bundles are known, of which one is in use", known())
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if again := table.share(authority("kept", 300)); unsafe.SliceData(again) != unsafe.SliceData(kept) {
		t.Error("a bundle that is in use was forgotten")
	}
	runtime.KeepAlive(kept)
}

// TestTableTakesACopy shares nothing with who brings a bundle.
func TestTableTakesACopy(t *testing.T) {
	table := newTable()
	given := append(make([]byte, 0, 4096), authority("a", 300)...)
	first := table.share(given)
	given[0] = 'x'
	if second := table.share(authority("a", 300)); !bytes.Equal(first, authority("a", 300)) || unsafe.SliceData(first) != unsafe.SliceData(second) {
		t.Errorf("a change of what was given changed what is shared to %.10q", first)
	}
	if cap(first) != len(first) {
		t.Errorf("the copy has room for %d bytes behind its %d", cap(first)-len(first), len(first))
	}
}

// TestTableTellsApart has two bundles with one hash stay two.
func TestTableTellsApart(t *testing.T) {
	table := newTable()
	one, other := table.share(authority("a", 300)), authority("b", 300)
	table.entries[maphash.Bytes(table.seed, other)] = table.entries[maphash.Bytes(table.seed, one)]
	if got := table.share(other); !bytes.Equal(got, other) {
		t.Errorf("another bundle with the same hash became %.10q", got)
	}
	runtime.KeepAlive(one)
}

// TestTableInParallel has many decode at a time, while bundles come and go.
func TestTableInParallel(t *testing.T) {
	table := newTable()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 2000 {
				want := authority(fmt.Sprint("ca", i%50), 300)
				if got := table.share(want); !bytes.Equal(got, want) {
					t.Errorf("%.10q in place of %.10q", got, want)
				}
				if i%500 == 0 {
					runtime.GC()
				}
			}
		})
	}
	all.Wait()
}
