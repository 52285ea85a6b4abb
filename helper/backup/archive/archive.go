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

// Listing is what a lineage has.
type Listing struct {
	// Backups are those that can be read, the newest first.
	Backups []layout.Backup
	// Unreadable says of the others, in their order, why they can't be used. They are
	// neither restored nor removed.
	Unreadable []Unreadable

	contents layout.Contents
}

// Unreadable is a backup that can't be used.
type Unreadable struct {
	Name, Why string
}

// List returns what the lineage has.
func (a Archive) List(ctx context.Context) (Listing, error) {
	found, err := a.Store.List(ctx, a.Lineage.Directory())
	if err != nil {
		return Listing{}, err
	}
	objects := make([]layout.Object, 0, len(found))
	for _, o := range found {
		objects = append(objects, layout.Object{Key: o.Key, ModTime: o.ModTime})
	}
	out := Listing{contents: a.Lineage.Read(objects)}
	for _, name := range out.contents.Names() {
		b, err := a.read(ctx, name, out.contents.HasVerification(name))
		why := ""
		switch unusable := new(unusableError); {
		case errors.Is(err, store.ErrAbsent):
			continue // it was removed meanwhile
		case errors.As(err, &unusable):
			why = unusable.Error()
		case err != nil:
			return Listing{}, err
		case !out.contents.HasSnapshot(b.Manifest):
			why = "its snapshot is gone"
		}
		if why != "" {
			out.Unreadable = append(out.Unreadable, Unreadable{name, why})
			continue
		}
		out.Backups = append(out.Backups, b)
	}
	out.Backups = layout.NewestFirst(out.Backups)
	return out, nil
}

// unusableError says why a manifest can't be used.
type unusableError struct{ error }

// read returns the backup of a name. The error is store.ErrAbsent when there is none, and
// an unusableError when its manifest can't be used.
func (a Archive) read(ctx context.Context, name string, verified bool) (layout.Backup, error) {
	content, err := a.Store.Read(ctx, a.Lineage.Manifest(name), layout.MaxBytes)
	if err != nil {
		return layout.Backup{}, err
	}
	m, err := layout.DecodeManifest(a.Lineage, name, content)
	if err != nil {
		return layout.Backup{}, &unusableError{fmt.Errorf("%s: %w", a.Store.Location(a.Lineage.Manifest(name)), err)}
	}
	b := layout.Backup{Manifest: m}
	if !verified {
		return b, nil
	}
	content, err = a.Store.Read(ctx, a.Lineage.Verification(name), layout.MaxBytes)
	switch {
	case err == nil:
		b.Verification = layout.DecodeVerification(m, content)
	case !errors.Is(err, store.ErrAbsent):
		return layout.Backup{}, err
	}
	return b, nil
}

// Find returns the backup of a name, as its manifest and its last verification say.
func (a Archive) Find(ctx context.Context, name string) (layout.Backup, error) {
	if err := layout.CheckName(name); err != nil {
		return layout.Backup{}, err
	}
	return a.read(ctx, name, true)
}

// Choose returns the backup that a choice means.
func (a Archive) Choose(ctx context.Context, choice layout.Choice) (layout.Backup, error) {
	have, err := a.List(ctx)
	if err != nil {
		return layout.Backup{}, err
	}
	for _, u := range have.Unreadable {
		if u.Name == choice.Name {
			return layout.Backup{}, fmt.Errorf("backup %s can't be used: %s", u.Name, u.Why)
		}
	}
	b, err := choice.Of(have.Backups)
	if err != nil {
		return layout.Backup{}, fmt.Errorf("in %s: %w", a.Store.Location(a.Lineage.Directory()), err)
	}
	return b, nil
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
	if err != nil && !errors.Is(err, store.ErrExists) {
		return layout.Backup{}, err
	}
	// A store may take no notice of the condition, and have kept that of another writer.
	found, readErr := a.Find(ctx, b.Name)
	switch {
	case readErr != nil:
		return layout.Backup{}, errors.Join(err, readErr)
	case found.ID != b.ID || err == nil && found.SHA256 != b.SHA256:
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
