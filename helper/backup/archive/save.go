package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/clusterregistry/operator/helper/backup/layout"
	"github.com/clusterregistry/operator/helper/backup/store"
	"github.com/clusterregistry/operator/helper/snapshot"
	"github.com/clusterregistry/operator/internal/contract"
)

// Request is the backup that is to be taken.
type Request struct {
	// Name and ID are those of the backup, and Release that of the registry.
	Name, ID, Release string
	// Prefix is that of the registry's keys in etcd. It ends with a slash.
	Prefix string
	// Scratch is an empty directory with room for a snapshot.
	Scratch string
	// SkipUnchanged has no backup taken when nothing has changed since the newest one.
	SkipUnchanged bool
}

// Save takes a backup, unless it was taken already, and reports it.
func (a Archive) Save(ctx context.Context, etcd snapshot.Etcd, r Request) (contract.BackupReport, error) {
	if err := layout.CheckName(r.Name); err != nil {
		return contract.BackupReport{}, err
	}
	switch b, err := a.Find(ctx, r.Name); {
	case err == nil && b.ID == r.ID:
		return a.Report(b), nil
	case err == nil:
		return contract.BackupReport{}, Taken(b)
	case !errors.Is(err, store.ErrAbsent):
		return contract.BackupReport{}, err
	}
	if r.SkipUnchanged {
		report, err := a.unchanged(ctx, etcd, r.Prefix)
		if err != nil || report.Unchanged {
			return report, err
		}
	}
	begun := time.Now()
	taken, err := snapshot.Take(ctx, etcd, r.Scratch, r.Name, r.Prefix)
	if err != nil {
		return contract.BackupReport{}, err
	}
	saved, err := a.Upload(ctx, taken.Path, contract.Backup{
		Name: r.Name, ID: r.ID, Time: begun.UTC().Truncate(time.Second), Revision: taken.Revision,
		EtcdVersion: taken.Version, Release: r.Release, Content: taken.Content, Hash: taken.Hash,
	})
	if err != nil {
		return contract.BackupReport{}, err
	}
	return a.Report(saved), nil
}

// unchanged returns the newest backup when nothing has changed since. Below the registry's
// prefix, that is: the servers' compactor alone raises etcd's revision every five minutes.
func (a Archive) unchanged(ctx context.Context, etcd snapshot.Etcd, prefix string) (contract.BackupReport, error) {
	have, err := a.List(ctx)
	if err != nil || len(have.Backups) == 0 {
		return contract.BackupReport{}, err
	}
	newest := have.Backups[0]
	if newest.Damaged() {
		return contract.BackupReport{}, nil
	}
	now, err := etcd.Content(ctx, prefix, 0)
	if err != nil || now.HighestModRevision != newest.HighestModRevision || !maps.Equal(now.Keys, newest.Keys) {
		return contract.BackupReport{}, err
	}
	report := a.Report(newest)
	report.Unchanged = true
	return report, nil
}

// Differences says how the content of a restored snapshot differs from what was saved;
// empty when it does not.
func Differences(saved, found contract.Content) string {
	var out []string
	for _, resource := range slices.Sorted(maps.Keys(merged(saved.Keys, found.Keys))) {
		if saved.Keys[resource] != found.Keys[resource] {
			out = append(out, fmt.Sprintf("%d keys of %s in place of %d", found.Keys[resource], resource, saved.Keys[resource]))
		}
	}
	if saved.HighestModRevision != found.HighestModRevision {
		out = append(out, fmt.Sprintf("revision %d of the newest change in place of %d", found.HighestModRevision, saved.HighestModRevision))
	}
	return strings.Join(out, ", ")
}

func merged(a, b map[string]int64) map[string]int64 {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]int64{}
	}
	maps.Copy(out, b)
	return out
}
