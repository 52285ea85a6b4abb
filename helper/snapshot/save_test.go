package snapshot

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/internal/contract"
)

// TestSaveExisting has no etcd: what is there is kept or refused without one.
func TestSaveExisting(t *testing.T) {
	whole := snapshotOf(t, buckets{"key": {string(key(9)): nil}, "meta": {}})
	ours := contract.Snapshot{Name: "a", Revision: 9, Bytes: int64(len(whole)), Version: "3.6.14"}
	const asks = "no etcd member can be asked"
	for _, test := range []struct {
		reason string
		data   []byte
		note   *note
		want   string // in the error; the snapshot is kept when empty
		stays  bool
	}{
		{reason: "whole", data: whole, note: &note{Snapshot: ours}, stays: true},
		{reason: "whole, and proven before", data: whole, note: &note{Snapshot: ours, Proven: true}, stays: true},
		{reason: "nothing is there", want: asks},
		{reason: "the data is gone", note: &note{Snapshot: ours}, want: asks},
		{reason: "damaged", data: append(append([]byte{}, whole[:600]...), whole[601:]...), note: &note{Snapshot: ours}, want: asks},
		{reason: "whole, but not what was noted", data: whole, note: &note{Snapshot: contract.Snapshot{Name: "a", Revision: 9, Bytes: 1}}, want: asks},
		{reason: "somebody else's", data: whole, want: "it belongs to someone else and is left unchanged", stays: true},
		{reason: "somebody else's that is no snapshot", data: []byte("x"), want: "it belongs to someone else and is left unchanged", stays: true},
		{reason: "the note is about another", data: whole, note: &note{Snapshot: contract.Snapshot{Name: "b", Bytes: ours.Bytes}}, want: "it belongs to someone else", stays: true},
	} {
		dir := t.TempDir()
		if test.data != nil {
			put(t, dir, "a.db", test.data)
		}
		if test.note != nil {
			putNote(t, dir, "a", *test.note)
		}
		put(t, dir, unfinished+"/b.db.part", whole)
		got, err := Save(t.Context(), Etcd{}, dir, "a")
		switch {
		case test.want == "" && (err != nil || got != ours):
			t.Errorf("%s: %+v, %v", test.reason, got, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %+v, %v; want %q", test.reason, got, err, test.want)
		}
		after, err := os.ReadFile(filepath.Join(dir, "a.db"))
		if stays := err == nil && bytes.Equal(after, test.data); stays != test.stays {
			t.Errorf("%s: it stays: %v", test.reason, stays)
		}
		if _, err := os.Stat(filepath.Join(dir, unfinished)); !os.IsNotExist(err) {
			t.Errorf("%s: something unfinished is left: %v", test.reason, err)
		}
	}
}

func TestNames(t *testing.T) {
	for name, valid := range map[string]bool{
		"a": true, "fleet-v0.1.0-20260101t120000": true, "0.1": true,
		"": false, ".": false, "..": false, ".unfinished": false, "../a": false, "a/b": false, "A": false, "a-": false, strings.Repeat("a", 201): false,
	} {
		if err := checkName(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := Save(t.Context(), Etcd{}, t.TempDir(), "../a"); err == nil || !strings.Contains(err.Error(), `the name "../a"`) {
		t.Errorf("a name with a path: %v", err)
	}
}

func TestCheckSpace(t *testing.T) {
	dir := t.TempDir()
	if err := checkSpace(dir, 1); err != nil {
		t.Errorf("a byte: %v", err)
	}
	if err := checkSpace(dir, 1<<60); err == nil || !strings.Contains(err.Error(), "needs 1209462790554 MiB: enlarge its claim") {
		t.Errorf("an exbibyte: %v", err)
	}
	if err := checkSpace(filepath.Join(dir, "absent"), 1); err == nil {
		t.Error("there is space in a folder that is not there")
	}
}
