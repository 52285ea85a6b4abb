package snapshot

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/internal/contract"
)

// putNote writes a note under a name, which may be another than the note's own.
func putNote(t *testing.T, dir, name string, n note) {
	t.Helper()
	content, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, name+".json", content)
}

// saved makes a snapshot that is some hours old.
func saved(t *testing.T, dir, name string, hours int, proven bool) {
	t.Helper()
	path := put(t, dir, name+".db", []byte("data"))
	putNote(t, dir, name, note{Snapshot: contract.Snapshot{Name: name, Revision: 9, Bytes: 4, Version: "3.6.14"}, Proven: proven})
	at := time.Now().Add(-time.Duration(hours) * time.Hour)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestKeep(t *testing.T) {
	for _, test := range []struct {
		reason  string
		last    int
		before  func(dir string)
		removed []string
	}{
		{reason: "the first", last: 3},
		{reason: "as many as are kept", last: 3, before: func(dir string) {
			saved(t, dir, "b", 1, true)
			saved(t, dir, "c", 2, true)
		}},
		{reason: "one too many", last: 3, removed: []string{"b"}, before: func(dir string) {
			saved(t, dir, "b", 9, true)
			saved(t, dir, "c", 2, true)
			saved(t, dir, "d", 1, true)
		}},
		{reason: "only the one that was proven now", last: 1, removed: []string{"c", "b"}, before: func(dir string) {
			saved(t, dir, "b", 1, true)
			saved(t, dir, "c", 2, true)
		}},
		{reason: "what was never proven does not take a place", last: 2, removed: []string{"c", "b"}, before: func(dir string) {
			saved(t, dir, "b", 1, false)
			saved(t, dir, "c", 2, false)
			saved(t, dir, "d", 3, true)
		}},
		{reason: "the clock of another node is ahead", last: 1, removed: []string{"b"}, before: func(dir string) { saved(t, dir, "b", -5, true) }},
		{reason: "a note is left of a removal that was interrupted", last: 3, removed: []string{"b"}, before: func(dir string) {
			putNote(t, dir, "b", note{Snapshot: contract.Snapshot{Name: "b"}, Proven: true})
		}},
	} {
		dir := t.TempDir()
		saved(t, dir, "a", 0, false)
		if test.before != nil {
			test.before(dir)
		}
		strangers := []string{
			put(t, dir, "lost+found/x", nil), put(t, dir, "by-hand.db", nil), put(t, dir, "other.json", []byte(`{"name":"another"}`)),
			put(t, dir, "broken.json", []byte("{")), put(t, dir, "broken.db", nil), put(t, dir, "readme.txt", nil),
		}
		removed, err := Keep(dir, "a", test.last)
		if err != nil || !slices.Equal(removed, test.removed) {
			t.Errorf("%s: removed %v, %v; want %v", test.reason, removed, err, test.removed)
		}
		gone := []string{filepath.Join(dir, unfinished)}
		for _, name := range test.removed {
			gone = append(gone, dataFile(dir, name), noteFile(dir, name))
		}
		for _, path := range gone {
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("%s: %s is left: %v", test.reason, path, err)
			}
		}
		for _, path := range strangers {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", test.reason, err)
			}
		}
		if n, err := readNote(dir, "a"); err != nil || n == nil || !n.Proven || n.Revision != 9 {
			t.Errorf("%s: the note on the proven snapshot is %+v, %v", test.reason, n, err)
		}
		// A container may be run again.
		if removed, err := Keep(dir, "a", test.last); err != nil || len(removed) > 0 {
			t.Errorf("%s, again: removed %v, %v", test.reason, removed, err)
		}
	}
}

func TestKeepFails(t *testing.T) {
	for _, test := range []struct {
		reason, name string
		last         int
		want         string
	}{
		{"none is kept", "a", 0, "the one that was just verified always is"},
		{"it is not there", "b", 3, "the snapshot that was verified"},
		{"it has no note", "c", 3, "there is no note"},
		{"no name of a snapshot", "../a", 3, "can't be that of a snapshot"},
	} {
		dir := t.TempDir()
		saved(t, dir, "a", 0, false)
		saved(t, dir, "old", 5, true)
		put(t, dir, "c.db", []byte("data"))
		if removed, err := Keep(dir, test.name, test.last); err == nil || !strings.Contains(err.Error(), test.want) || len(removed) > 0 {
			t.Errorf("%s: removed %v, %v; want %q", test.reason, removed, err, test.want)
		}
		if _, err := os.Stat(dataFile(dir, "old")); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
