package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
)

// errDamaged is about a file that is not what etcd sent.
var errDamaged = errors.New("the snapshot is damaged")

// verify compares a snapshot with the SHA-256 that etcd has appended to it, and
// returns its size. The error is errDamaged, or that of the file system.
func verify(path string) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	// A database is whole sectors.
	size := info.Size()
	if size%512 != sha256.Size {
		return 0, fmt.Errorf("%w: %s has %d bytes and so no checksum at its end", errDamaged, path, size)
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, file, size-sha256.Size); err != nil {
		return 0, err
	}
	want, err := io.ReadAll(file)
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return 0, fmt.Errorf("%w: the checksum at the end of %s is that of other content", errDamaged, path)
	}
	return size, nil
}

// revision returns the revision that etcd has when it starts on a snapshot,
// found as go.etcd.io/etcd/server/v3/storage/mvcc finds it: that of the last key
// in the bucket of all revisions, unless a compaction, which is noted in the
// bucket of meta data, has removed even later ones. The error is errDamaged where
// the file can't be followed: bbolt panics then, or reads what is not mapped.
func revision(path string) (last int64, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			last, err = 0, fmt.Errorf("%w: %s has the right checksum, and its pages don't fit together: %v", errDamaged, path, cause)
		}
	}()
	db, err := bbolt.Open(path, 0o400, &bbolt.Options{ReadOnly: true, Timeout: 10 * time.Second})
	if err != nil {
		return 0, fmt.Errorf("open the snapshot %s: %w", path, err)
	}
	defer func() { _ = db.Close() }() // it was only read
	last = 1                          // that of an etcd that was never written to
	err = db.View(func(tx *bbolt.Tx) error {
		if err := checkPages(path, db.Info().PageSize, uint64(tx.Cursor().Bucket().Root())); err != nil {
			return err
		}
		keys, meta := tx.Bucket([]byte("key")), tx.Bucket([]byte("meta"))
		if keys == nil || meta == nil {
			return fmt.Errorf("%s is no database of etcd: it has no keys or no meta data", path)
		}
		newest, _ := keys.Cursor().Last()
		for _, found := range [][]byte{newest, meta.Get([]byte("finishedCompactRev")), meta.Get([]byte("scheduledCompactRev"))} {
			if len(found) >= 8 {
				last = max(last, int64(binary.BigEndian.Uint64(found)))
			}
		}
		return nil
	})
	return last, err
}
