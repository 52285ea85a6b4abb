// Package archive saves what a registry's etcd holds to a store, reads it back and removes
// what is old. Where things are in the store is what package layout says.
package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/clusterregistry/operator/helper/backup/layout"
	"github.com/clusterregistry/operator/helper/backup/store"
	"github.com/clusterregistry/operator/internal/contract"
)

// Archive is one lineage in a store.
type Archive struct {
	Store   *store.Store
	Lineage layout.Lineage
}

// Report returns what is reported of a backup.
func (a Archive) Report(b layout.Backup) contract.BackupReport {
	report := contract.BackupReport{Backup: b.Backup, Location: a.Store.Location(a.Lineage.Manifest(b.Name))}
	if b.Verified() {
		report.VerifiedTime, report.EncryptionKeys = &b.Verification.Time, b.Verification.EncryptionKeys
	}
	return report
}

// Check makes sure that the store can be reached, listed and written to, by writing whose
// lineage it is; and that it keeps what is there, when it is written again on the condition
// that it is not. Otherwise, of two writers both would take theirs for the backup.
func (a Archive) Check(ctx context.Context, registry string) error {
	content, err := layout.Descriptor{Lineage: a.Lineage.ID(), Registry: registry}.Encode()
	if err != nil {
		return err
	}
	for range 2 {
		switch err = a.Store.Put(ctx, a.Lineage.Descriptor(), bytes.NewReader(content)); {
		case errors.Is(err, store.ErrExists):
			_, err = a.Store.List(ctx, a.Lineage.Directory())
			return err
		case err != nil:
			return err
		}
	}
	return a.Store.Unconditional(a.Lineage.Descriptor())
}

// Upload makes a snapshot a backup: the file at path, which is what b says. It can be
// called again after it was interrupted at any point, with the same snapshot or another
// one. A backup that another request has made under the name is an error.
func (a Archive) Upload(ctx context.Context, path string, b contract.Backup) (layout.Backup, error) {
	var err error
	if b.SHA256, b.Bytes, err = sumOf(path); err != nil {
		return layout.Backup{}, err
	}
	m := layout.NewManifest(a.Lineage, b)
	manifest, err := m.Encode()
	if err != nil {
		return layout.Backup{}, fmt.Errorf("write the manifest of backup %s: %w", b.Name, err)
	}
	if err := a.upload(ctx, path, m); err != nil {
		return layout.Backup{}, err
	}
	err = a.Store.Put(ctx, a.Lineage.Manifest(b.Name), bytes.NewReader(manifest))
	// A store may take no notice of the condition, and have kept that of another writer. And it
	// may have written this one, although its answer was lost.
	found, readErr := a.Find(ctx, b.Name)
	same := readErr == nil && found.ID == b.ID && found.SHA256 == b.SHA256
	switch {
	case err != nil && !errors.Is(err, store.ErrExists) && !same:
		return layout.Backup{}, err
	case readErr != nil:
		return layout.Backup{}, errors.Join(err, readErr)
	case found.ID != b.ID || err == nil && !same:
		return layout.Backup{}, Taken(found)
	}
	return found, nil
}

// Taken returns the error about a name that a backup has already.
func Taken(found layout.Backup) error {
	return fmt.Errorf("there is already a backup %s, which another request (%s) took at %s: choose another name", found.Name, found.ID, found.Time.UTC().Format(time.RFC3339))
}

// upload writes a snapshot, and reads it back: what the store returns has to be what was
// read from the file.
func (a Archive) upload(ctx context.Context, path string, m layout.Manifest) error {
	key := a.Lineage.Snapshot(m.Name, m.SHA256)
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it is only read
	if err := a.Store.Put(ctx, key, file); err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	sum, size, err := a.download(ctx, key, io.Discard)
	if err != nil {
		return err
	}
	if sum != m.SHA256 || size != m.Bytes {
		// No manifest names it, and nothing that has its name can be right.
		return errors.Join(fmt.Errorf("%s was written with SHA-256 %s (%d bytes), and the store returns SHA-256 %s (%d bytes): it, or the network, damages data; it is removed", a.Store.Location(key), m.SHA256, m.Bytes, sum, size), a.Store.Delete(ctx, key))
	}
	return nil
}

// download copies an object, and returns its checksum and size.
func (a Archive) download(ctx context.Context, key string, to io.Writer) (sum string, size int64, err error) {
	r, err := a.Store.Open(ctx, key)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = r.Close() }() // it was read
	hash := sha256.New()
	size, err = io.Copy(io.MultiWriter(hash, to), r)
	return hex.EncodeToString(hash.Sum(nil)), size, err
}

// DamagedError is about a backup whose snapshot is not what was saved.
type DamagedError struct{ Why string }

// Error says what is wrong.
func (e *DamagedError) Error() string { return e.Why }

// Fetch writes the snapshot of a backup to a file that does not exist yet. The file is
// whole and what was saved, or is not there; a DamagedError says that the store has
// something else.
func (a Archive) Fetch(ctx context.Context, b layout.Backup, path string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(path) // the error says more
		}
	}()
	key := a.Lineage.Snapshot(b.Name, b.SHA256)
	sum, size, err := a.download(ctx, key, file)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		if errors.Is(err, store.ErrAbsent) {
			return &DamagedError{fmt.Sprintf("backup %s has no snapshot any more: %s is gone", b.Name, a.Store.Location(key))}
		}
		return err
	}
	if sum != b.SHA256 || size != b.Bytes {
		return &DamagedError{fmt.Sprintf("%s has SHA-256 %s (%d bytes), and was saved with %s (%d bytes)", a.Store.Location(key), sum, size, b.SHA256, b.Bytes)}
	}
	return nil
}

// sumOf returns the SHA-256 of a file and its size.
func sumOf(path string) (sum string, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = file.Close() }() // it is only read
	hash := sha256.New()
	size, err = io.Copy(hash, file)
	return hex.EncodeToString(hash.Sum(nil)), size, err
}
