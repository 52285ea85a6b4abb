// Package snapshot saves what etcd holds to a directory, and keeps the last of
// what was saved and verified. A snapshot is two files, NAME.db, which etcdutl
// restores, and NAME.json, a note on it; a file without that note is someone
// else's and is never touched.
//
// Its errors are for people: kubelet shows the last 2048 bytes of a failed
// container's output as the reason why the Pod failed.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	etcdsnapshot "go.etcd.io/etcd/client/v3/snapshot"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterregistry/operator/internal/contract"
)

// Save saves a snapshot of etcd as name to a directory and returns what it is. One
// of that name that is whole is kept, since a Pod may be run again; a damaged
// one is replaced. The file has its name only when it is whole and on disk, and
// what an interrupted Save has left is removed.
//
// The revision in the record is the file's own. Save compares it with what a
// linearizable read returned before, and fails where it is older.
func Save(ctx context.Context, etcd Etcd, dir, name string) (contract.Snapshot, error) {
	if err := checkName(name); err != nil {
		return contract.Snapshot{}, err
	}
	work := filepath.Join(dir, unfinished)
	if err := os.RemoveAll(work); err != nil {
		return contract.Snapshot{}, fmt.Errorf("remove what an interrupted snapshot has left: %w", err)
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return contract.Snapshot{}, fmt.Errorf("prepare for a snapshot: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }() // the next one removes it, too
	if saved, found, err := Existing(dir, name); err != nil || found {
		return saved, err
	}
	from, err := etcd.choose(ctx)
	if err != nil {
		return contract.Snapshot{}, err
	}
	if err := checkSpace(dir, from.size); err != nil {
		return contract.Snapshot{}, err
	}
	temporary := dataFile(work, name)
	if err := etcd.fetch(ctx, from, temporary); err != nil {
		return contract.Snapshot{}, fmt.Errorf("save a snapshot of %s: %w", from.endpoint, err)
	}
	record := contract.Snapshot{Name: name, Version: from.version}
	if record.Bytes, err = verify(temporary); err != nil {
		return contract.Snapshot{}, err
	}
	if record.Revision, err = revision(temporary); err != nil {
		return contract.Snapshot{}, err
	}
	if record.Revision < from.revision {
		return contract.Snapshot{}, fmt.Errorf("the snapshot of %s has revision %d, but before it was taken the member answered with revision %d: it lacks acknowledged writes and is not used", from.endpoint, record.Revision, from.revision)
	}
	if err := (note{Snapshot: record}).write(dir); err != nil {
		return contract.Snapshot{}, fmt.Errorf("write the note on the snapshot: %w", err)
	}
	return record, place(temporary, dataFile(dir, name))
}

// fetch writes a snapshot of a member to a file.
func (e Etcd) fetch(ctx context.Context, from member, path string) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	config, err := e.config(from.endpoint, fail)
	if err != nil {
		return err
	}
	// The version that comes with it is that of the storage, a minor one.
	_, err = etcdsnapshot.SaveWithVersion(ctx, zap.NewNop(), config, path)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// Existing returns the record of a whole snapshot, if there is one. It removes
// a damaged one, and fails where a file of someone else has the name.
func Existing(dir, name string) (saved contract.Snapshot, found bool, err error) {
	path := dataFile(dir, name)
	size, damage := verify(path)
	if errors.Is(damage, fs.ErrNotExist) {
		return contract.Snapshot{}, false, nil
	}
	if damage != nil && !errors.Is(damage, errDamaged) {
		return contract.Snapshot{}, false, damage
	}
	n, err := readNote(dir, name)
	switch {
	case err != nil:
		return contract.Snapshot{}, false, err
	case n == nil:
		return contract.Snapshot{}, false, fmt.Errorf("%s is there without %s, which Save writes first: it belongs to someone else and is left unchanged; move it away, or choose another name", path, noteFile(dir, name))
	case damage == nil && size == n.Bytes:
		return n.Snapshot, true, nil
	}
	return contract.Snapshot{}, false, os.Remove(path)
}

// checkSpace fails where a file system has no room for a database of the given
// size in bytes, and a tenth and a MiB more: it may grow until it is saved.
func checkSpace(dir string, size int64) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("find out how much space is free in %s: %w", dir, err)
	}
	need, free := uint64(size+size/10+1<<20), stat.Bavail*uint64(stat.Bsize)
	if free < need {
		return fmt.Errorf("the volume at %s has %d MiB free, and a snapshot of etcd's database needs %d MiB: enlarge its claim, or move old snapshots (*.db and *.json) elsewhere", dir, free>>20, need>>20)
	}
	return nil
}
