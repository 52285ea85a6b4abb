package snapshot

import (
	"context"
	"errors"
	"fmt"

	"github.com/clusterregistry/operator/internal/contract"
)

// Taken is a snapshot, and what etcd's members say of its revision.
type Taken struct {
	contract.Snapshot
	contract.Content
	// Hash is that of the data of all members that answered, which agree.
	Hash contract.KeysHash
	// Path is where the snapshot is.
	Path string
}

// attempts is how often a snapshot is taken until etcd is not compacted meanwhile, which
// the servers have it do every five minutes.
const attempts = 3

// Take saves a snapshot of etcd to a directory in place of one that is there, and asks the
// members at the revision that it has: what is below the prefix, which ends with a slash,
// and for the hash of all data. That can be compared with the file's: both were made after
// the same compaction.
func Take(ctx context.Context, etcd Etcd, dir, name, prefix string) (Taken, error) {
	return unlessCompacted(func() (Taken, error) {
		// It may be one of an earlier run of this program, and long out of date.
		if err := discard(dir, name); err != nil {
			return Taken{}, err
		}
		return etcd.take(ctx, dir, name, prefix)
	})
}

// SaveCompared saves a snapshot as Save does, and has the members compared at its revision: of
// members that hold different data, it may be of the wrong one.
func SaveCompared(ctx context.Context, etcd Etcd, dir, name string) (contract.Snapshot, error) {
	return unlessCompacted(func() (contract.Snapshot, error) {
		saved, err := Save(ctx, etcd, dir, name)
		if err != nil {
			return contract.Snapshot{}, err
		}
		_, err = etcd.Hash(ctx, saved.Revision)
		if errors.Is(err, errCompacted) {
			err = errors.Join(err, discard(dir, name))
		}
		return saved, err
	})
}

// unlessCompacted takes a snapshot again when etcd was compacted meanwhile.
func unlessCompacted[T any](take func() (T, error)) (taken T, err error) {
	for attempt := 1; ; attempt++ {
		if taken, err = take(); !errors.Is(err, errCompacted) {
			return taken, err
		}
		if attempt == attempts {
			return taken, fmt.Errorf("the snapshot can't be compared with what etcd's members hold: %w, %d times; is it compacted more often than every few minutes?", err, attempts)
		}
	}
}

// discard removes a snapshot.
func discard(dir, name string) error {
	return errors.Join(remove(dataFile(dir, name)), remove(noteFile(dir, name)))
}

func (e Etcd) take(ctx context.Context, dir, name, prefix string) (Taken, error) {
	saved, err := Save(ctx, e, dir, name)
	if err != nil {
		return Taken{}, err
	}
	taken := Taken{Snapshot: saved, Path: dataFile(dir, name)}
	compacted, err := compactRevision(taken.Path)
	if err != nil {
		return Taken{}, err
	}
	if taken.Hash, err = e.Hash(ctx, saved.Revision); err != nil {
		return Taken{}, err
	}
	if taken.Hash.CompactRevision != compacted {
		return Taken{}, errCompacted
	}
	taken.Content, err = e.Content(ctx, prefix, saved.Revision)
	return taken, err
}

// compactRevision returns the revision to which an etcd is compacted that starts on a
// snapshot, -1 when it never was.
func compactRevision(path string) (compacted int64, err error) {
	err = read(path, func(db *database, _, meta region) (err error) {
		compacted, err = db.compacted(meta)
		return err
	})
	return compacted, err
}
