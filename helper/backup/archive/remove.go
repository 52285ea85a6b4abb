package archive

import (
	"context"
	"time"

	"github.com/clusterregistry/operator/helper/backup/layout"
)

// most is how many backups are removed at a time, whose names fit into a termination
// message. The others go the next time.
const most = 40

// Prune removes the backups that the retention lets go, the oldest first, and what
// interrupted ones have left. It returns the names of those that it removed, even when it
// fails.
func (a Archive) Prune(ctx context.Context, keep layout.Retention, now time.Time) (removed []string, err error) {
	have, err := a.List(ctx)
	if err != nil {
		return nil, err
	}
	goes := keep.Obsolete(have.Backups, now)
	for _, b := range goes[:min(most, len(goes))] {
		if err := a.remove(ctx, have.contents, b.Name); err != nil {
			return removed, err
		}
		removed = append(removed, b.Name)
	}
	for _, key := range have.contents.Left(a.Lineage, have.Backups) {
		if err := a.Store.Delete(ctx, key); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// Delete removes one backup, or what is left of it. That there is none is no error.
func (a Archive) Delete(ctx context.Context, name string) error {
	if err := layout.CheckName(name); err != nil {
		return err
	}
	have, err := a.List(ctx)
	if err != nil {
		return err
	}
	return a.remove(ctx, have.contents, name)
}

func (a Archive) remove(ctx context.Context, contents layout.Contents, name string) error {
	for _, key := range contents.Removal(a.Lineage, name) {
		if err := a.Store.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
