package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
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
// the file can't be followed.
func revision(path string) (last int64, err error) {
	err = read(path, func(db *database, keys, meta region) error {
		newest, err := db.last(keys)
		if err != nil {
			return err
		}
		compacted, err := db.compacted(meta)
		last = max(1, revisionIn(newest), compacted) // 1 is that of an etcd that was never written to
		return err
	})
	return last, err
}

// read opens a snapshot, and has its bucket of all revisions and that of meta data read.
func read(path string, by func(db *database, keys, meta region) error) error {
	db, err := bbolt.Open(path, 0o400, &bbolt.Options{ReadOnly: true, Timeout: 10 * time.Second})
	if err != nil {
		return fmt.Errorf("open the snapshot %s: %w", path, err)
	}
	defer func() { _ = db.Close() }() // it was only read
	var number uint64
	err = db.View(func(tx *bbolt.Tx) error {
		number = uint64(tx.Cursor().Bucket().Root())
		return nil
	})
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := inBuckets(&database{file: file, size: info.Size(), pageSize: int64(db.Info().PageSize)}, number, by); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func inBuckets(db *database, number uint64, by func(db *database, keys, meta region) error) error {
	root, err := db.page(number)
	if err != nil {
		return err
	}
	keys, err := db.bucket(root, "key")
	if err != nil {
		return err
	}
	meta, err := db.bucket(root, "meta")
	if err != nil {
		return err
	}
	return by(db, keys, meta)
}

// compacted returns the revision to which etcd is compacted when it has started, since it
// completes what it had begun; -1 when it never was.
func (d *database) compacted(meta region) (int64, error) {
	last := int64(-1)
	for _, name := range []string{"finishedCompactRev", "scheduledCompactRev"} {
		value, err := d.get(meta, name)
		if err != nil {
			return 0, err
		}
		if value != nil {
			last = max(last, revisionIn(value))
		}
	}
	return last, nil
}

// revisionIn returns the revision that a key or value begins with, 0 when it is too
// short to have one.
func revisionIn(content []byte) int64 {
	if len(content) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(content)) //nolint:gosec // a negative one is less than any
}
