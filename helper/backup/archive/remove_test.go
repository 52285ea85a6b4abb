package archive

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/helper/backup/layout"
)

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	a, other := archive(t, dir, "one"), archive(t, dir, "two")
	other.mustUpload(t, "b1", 1)
	for i := range int64(4) {
		a.mustUpload(t, fmt.Sprint("b", i+1), i+1)
	}
	must(t, a.Store.Put(t.Context(), "prod/one/b1/notes.txt", strings.NewReader("someone else's")))
	must(t, a.Store.Put(t.Context(), a.Lineage.Manifest("unreadable"), strings.NewReader("{")))
	must(t, a.Store.Put(t.Context(), a.Lineage.Verification("b1"), strings.NewReader("{}")))
	left := a.Lineage.Snapshot("left", strings.Repeat("0a", 32))
	must(t, a.Store.Put(t.Context(), left, strings.NewReader("x")))
	old := time.Now().Add(-48 * time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, left), old, old))

	removed, err := a.Prune(t.Context(), layout.Retention{KeepLast: 2}, start.Add(10*time.Hour))
	if err != nil || !slices.Equal(removed, []string{"b1", "b2"}) {
		t.Errorf("removed are %v, %v", removed, err)
	}
	if got := a.names(t); got != "b4 b3 !unreadable" {
		t.Errorf("left are %s", got)
	}
	var below []string
	for _, key := range keys(t, a) {
		if strings.HasPrefix(key, "prod/one/b1/") || key == left {
			below = append(below, key)
		}
	}
	if !slices.Equal(below, []string{"prod/one/b1/notes.txt"}) {
		t.Errorf("left are %v", below)
	}
	if got := other.names(t); got != "b1" {
		t.Errorf("of another lineage, %s are left", got)
	}
	for range 2 {
		must(t, a.Delete(t.Context(), "b4"))
		must(t, a.Delete(t.Context(), "unreadable"))
	}
	if got := a.names(t); got != "b3" {
		t.Errorf("left are %s", got)
	}
}

// TestPruneOthers removes what can be, and says what can't. A backup whose manifest is gone is none any
// more: its object is to go, and what else it had is removed once it can be.
func TestPruneOthers(t *testing.T) {
	dir := t.TempDir()
	a := archive(t, dir, "one")
	var left []string
	for i := range int64(5) {
		b := a.mustUpload(t, fmt.Sprint("b", i+1), i+1)
		if i == 0 || i == 2 {
			// Where the driver removes a file with attributes, which user root is not kept from.
			left = append(left, a.Lineage.Snapshot(b.Name, b.SHA256))
			must(t, os.MkdirAll(filepath.Join(dir, left[len(left)-1]+".attrs", "kept"), 0o700))
		}
	}
	removed, err := a.Prune(t.Context(), layout.Retention{KeepLast: 1}, start)
	if !slices.Equal(removed, []string{"b1", "b2", "b3", "b4"}) || err == nil || !strings.Contains(err.Error(), "delete prod/one/b1/") || !strings.HasSuffix(err.Error(), "; and 1 more could not be removed") {
		t.Errorf("removed are %v: %v", removed, err)
	}
	old := time.Now().Add(-48 * time.Hour)
	for _, key := range left {
		must(t, os.RemoveAll(filepath.Join(dir, key+".attrs")))
		must(t, os.WriteFile(filepath.Join(dir, key), []byte("x"), 0o600)) // as in a store that has deleted nothing
		must(t, os.Chtimes(filepath.Join(dir, key), old, old))
	}
	removed, err = a.Prune(t.Context(), layout.Retention{KeepLast: 1}, start)
	if have := keys(t, a); len(removed) > 0 || err != nil || slices.Contains(have, left[0]) || slices.Contains(have, left[1]) {
		t.Errorf("after that, removed are %v, %v, and there are %v", removed, err, have)
	}
	have, err := a.List(t.Context())
	must(t, err)
	must(t, a.Store.Close())
	if gone, err := a.remove(t.Context(), have.contents, "b5"); gone || err == nil {
		t.Errorf("its manifest is not removed: %v, %v", gone, err)
	}
}

// until is a context that ends as soon as a file is gone.
type until struct {
	context.Context
	file string
}

func (u until) Err() error {
	if _, err := os.Stat(u.file); err != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// TestPruneInTime says what was removed when the time is over, and begins no other removal.
func TestPruneInTime(t *testing.T) {
	dir := t.TempDir()
	a := archive(t, dir, "one")
	for i := range int64(3) {
		a.mustUpload(t, fmt.Sprint("b", i+1), i+1)
	}
	ctx := until{t.Context(), filepath.Join(dir, a.Lineage.Manifest("b1"))}
	if removed, err := a.Prune(ctx, layout.Retention{KeepLast: 1}, start); !slices.Equal(removed, []string{"b1"}) || err == nil {
		t.Errorf("removed are %v: %v", removed, err)
	}
	if removed, err := a.Prune(t.Context(), layout.Retention{KeepLast: 1}, start); !slices.Equal(removed, []string{"b2"}) || err != nil {
		t.Errorf("the next time, removed are %v: %v", removed, err)
	}
}

// TestPruneInParts removes no more at a time than a termination message can name.
func TestPruneInParts(t *testing.T) {
	a := archive(t, t.TempDir(), "one")
	for i := range int64(most + 2) {
		a.mustUpload(t, fmt.Sprintf("b%02d", i), i+1)
	}
	for _, want := range []int{most, 1, 0} {
		if removed, err := a.Prune(t.Context(), layout.Retention{KeepLast: 1}, start); err != nil || len(removed) != want {
			t.Errorf("%d are removed, %v; want %d", len(removed), err, want)
		}
	}
}
