package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// key is a key in etcd's database: a revision's number, '_', and where in it.
func key(revision uint64) []byte {
	return append(binary.BigEndian.AppendUint64(nil, revision), "_\x00\x00\x00\x00\x00\x00\x00\x00"...)
}

// buckets are the buckets of a database.
type buckets map[string]map[string][]byte

// snapshotOf returns the content of a snapshot.
func snapshotOf(t *testing.T, content buckets) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for bucket, keys := range content {
			b, err := tx.CreateBucket([]byte(bucket))
			if err != nil {
				return err
			}
			for key, value := range keys {
				if err := b.Put([]byte(key), value); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(bytes)
	return append(bytes, sum[:]...)
}

// put writes a file below a folder.
func put(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVerify(t *testing.T) {
	whole := snapshotOf(t, buckets{"key": {}, "meta": {}})
	flipped := append([]byte{}, whole...)
	flipped[len(flipped)/2] ^= 1
	for _, test := range []struct {
		reason  string
		content []byte
		damaged bool
	}{
		{"whole", whole, false},
		{"empty", nil, true},
		{"one bit differs", flipped, true},
		{"the checksum is missing", whole[:len(whole)-sha256.Size], true},
		{"cut", whole[:len(whole)-1], true},
		{"cut by whole sectors", append(append([]byte{}, whole[:1024]...), whole[len(whole)-sha256.Size:]...), true},
	} {
		size, err := verify(put(t, t.TempDir(), "a.db", test.content))
		if errors.Is(err, errDamaged) != test.damaged || !test.damaged && (err != nil || size != int64(len(test.content))) {
			t.Errorf("%s: %d, %v", test.reason, size, err)
		}
	}
	if _, err := verify(filepath.Join(t.TempDir(), "a.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a file that is not there: %v", err)
	}
}

func TestRevision(t *testing.T) {
	for _, test := range []struct {
		reason  string
		content buckets
		want    int64 // an error when 0
	}{
		{"nothing was ever written", buckets{"key": {}, "meta": {}}, 1},
		{"the last of three", buckets{"key": {string(key(2)): nil, string(key(300)): nil, string(key(70000)): nil}, "meta": {}}, 70000},
		{"a deletion is a revision", buckets{"key": {string(key(7)): nil, string(append(key(8), 't')): nil}, "meta": {}}, 8},
		{"compacted below it", buckets{"key": {string(key(9)): nil}, "meta": {"finishedCompactRev": key(5), "scheduledCompactRev": key(6)}}, 9},
		{"compacted, with nothing left", buckets{"key": {}, "meta": {"finishedCompactRev": key(12), "scheduledCompactRev": key(12)}}, 12},
		{"a compaction under way", buckets{"key": {string(key(9)): nil}, "meta": {"finishedCompactRev": key(5), "scheduledCompactRev": key(11)}}, 11},
		{"not etcd's", buckets{"other": {}}, 0},
	} {
		got, err := revision(put(t, t.TempDir(), "a.db", snapshotOf(t, test.content)))
		if (err != nil) != (test.want == 0) || err == nil && got != test.want {
			t.Errorf("%s: %d, %v; want %d", test.reason, got, err, test.want)
		}
	}
}

// FuzzRevision reads snapshots that are damaged although their checksum is right,
// as when etcd itself sent what its disk had lost: an error, never a crash.
func FuzzRevision(f *testing.F) {
	path := filepath.Join(f.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		f.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "meta"} {
			b, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			if err := b.Put(key(7), key(9)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, []byte{})
	f.Add(0x1000, []byte{1, 0, 0, 0})                   // a meta page that is none
	f.Add(0x50, []byte{0xff, 0xff, 0xff, 0xff, 0xff})   // a root that is nowhere
	f.Add(0x2010, []byte{0xff, 0xff, 0xff, 0xff})       // a free list without an end
	f.Add(0x3000, []byte{2, 0, 0, 0, 0, 0, 0, 0, 1})    // a page of another kind
	f.Add(0x3018, []byte{0xff, 0xff, 0xff, 0x7f, 0xff}) // an element that is far away
	f.Add(len(whole)-0x1000, make([]byte, 0x1000))      // the last page is lost
	f.Add(0x4000, []byte("elsewher"))                   // a page that is another
	f.Add(0x4047, []byte("es%whher"))                   // a branch that leads back to itself
	f.Fuzz(func(t *testing.T, at int, damage []byte) {
		if at < 0 || at+len(damage) > len(whole) {
			return
		}
		content := append([]byte{}, whole...)
		copy(content[at:], damage)
		sum := sha256.Sum256(content)
		path := put(t, t.TempDir(), "a.db", append(content, sum[:]...))
		if _, err := verify(path); err != nil {
			t.Errorf("its checksum is right: %v", err)
		}
		_, _ = revision(path)
	})
}

// FuzzReadNote reads notes that others may have written beside a snapshot.
func FuzzReadNote(f *testing.F) {
	f.Add([]byte(`{"name":"a","revision":7,"bytes":512,"version":"3.6.14","proven":true}`))
	f.Add([]byte(`{"name":"b"}`))
	f.Add([]byte(`{"name":"a","revision":1e99}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		put(t, dir, "a.json", content)
		n, err := readNote(dir, "a")
		if err != nil || n != nil && n.Name != "a" {
			t.Errorf("%q is read as %+v, %v", content, n, err)
		}
	})
}
