package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/clusterregistry/operator/helper/backup/layout"
	"github.com/clusterregistry/operator/helper/snapshot"
)

// Verify restores a backup on trial, compares what etcd has then with what its members had
// when the backup was taken, and has a server read it. It records the outcome in the store,
// unless it could not find out. A DamagedError says that the backup can't be used.
func (a Archive) Verify(ctx context.Context, name, prefix string, trial snapshot.Trial, server Server) (layout.Backup, error) {
	b, err := a.Find(ctx, name)
	if err != nil {
		return layout.Backup{}, err
	}
	dir, err := os.MkdirTemp(trial.Scratch, "verify-")
	if err != nil {
		return layout.Backup{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is scratch
	path := filepath.Join(dir, "snapshot.db")
	v := layout.Verification{SHA256: b.SHA256, Time: time.Now().UTC().Truncate(time.Second)}
	damaged := new(DamagedError)
	switch err := a.Fetch(ctx, b, path); {
	case errors.As(err, &damaged):
		v.Damage = damaged.Why
	case err != nil:
		return layout.Backup{}, err
	default:
		if err := try(ctx, b, path, prefix, trial, server, &v); err != nil {
			return layout.Backup{}, err
		}
	}
	content, err := v.Encode()
	if err != nil {
		return layout.Backup{}, err
	}
	if err := a.Store.Replace(ctx, a.Lineage.Verification(name), content); err != nil {
		return layout.Backup{}, err
	}
	b.Verification = &v
	if v.Damage != "" {
		return b, &DamagedError{fmt.Sprintf("backup %s can't be used: %s", name, v.Damage)}
	}
	return b, nil
}

// try restores a snapshot on trial, and says in the verification what is wrong with it. What
// the server can't read is an error: another encryption configuration may have the key.
func try(ctx context.Context, b layout.Backup, path, prefix string, trial snapshot.Trial, server Server, v *layout.Verification) error {
	if server.Program != "" {
		trial.Also = func(ctx context.Context, etcd snapshot.Etcd) error {
			keys, err := server.read(ctx, etcd, prefix, b.Keys)
			v.EncryptionKeys = keys
			return err
		}
	}
	found, err := trial.Run(ctx, path, prefix, b.Revision)
	if refused := new(snapshot.RefusedError); errors.As(err, &refused) {
		v.Damage = refused.Why
		return nil
	}
	if err != nil {
		return fmt.Errorf("backup %s is not verified: %w", b.Name, err)
	}
	v.EtcdVersion = found.Version
	if found.Hash.Hash != b.Hash.Hash || found.Hash.CompactRevision != b.Hash.CompactRevision {
		v.Damage = fmt.Sprintf("restored, its keys have hash %d (compacted at %d) at revision %d, and etcd's members had %d (compacted at %d)", found.Hash.Hash, found.Hash.CompactRevision, b.Revision, b.Hash.Hash, b.Hash.CompactRevision)
		return nil
	}
	if differences := Differences(b.Content, found.Content); differences != "" {
		v.Damage = "restored, it has " + differences
	}
	return nil
}
