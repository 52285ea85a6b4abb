package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clusterregistry/operator/helper/backup/layout"
	"github.com/clusterregistry/operator/helper/backup/store"
)

// most is how many backups are removed at a time, whose names fit into a termination
// message. The others go the next time.
const most = 40

// errLate is why the others are removed the next time.
var errLate = errors.New("there was no time to remove all of them: the others are removed the next time")

// Prune removes the backups that the retention lets go, the oldest first, and what
// interrupted ones have left. It returns the names of those that it removed, even when it
// fails. One that the store lets not be removed keeps no other one. When the context ends, so does
// Prune: who is stopped tells no one what was removed.
func (a Archive) Prune(ctx context.Context, keep layout.Retention, now time.Time) (removed []string, err error) {
	have, err := a.List(ctx)
	if err != nil {
		return nil, err
	}
	kept := 0
	refused := func(why error) (others bool) {
		kept, err = kept+1, cmp.Or(err, why)
		return ctx.Err() == nil && !errors.Is(why, store.ErrUnreachable)
	}
	for _, b := range keep.Obsolete(have.Backups, now) {
		if len(removed) == most {
			break
		}
		if ctx.Err() != nil {
			return removed, cmp.Or(err, errLate)
		}
		gone, why := a.remove(ctx, have.contents, b.Name)
		if gone {
			removed = append(removed, b.Name)
		}
		if why != nil && !refused(why) {
			return removed, why
		}
	}
	for _, key := range have.contents.Left(a.Lineage, have.Backups) {
		if ctx.Err() != nil {
			return removed, cmp.Or(err, errLate)
		}
		if why := a.Store.Delete(ctx, key); why != nil && !refused(why) {
			return removed, why
		}
	}
	if kept > 1 {
		err = fmt.Errorf("%w; and %d more could not be removed", err, kept-1)
	}
	return removed, err
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
	_, err = a.remove(ctx, have.contents, name)
	return err
}

// remove removes one backup. It is gone with its manifest, also where the rest of it is left, which
// Prune finds later.
func (a Archive) remove(ctx context.Context, contents layout.Contents, name string) (gone bool, err error) {
	for _, key := range contents.Removal(a.Lineage, name) {
		if err := a.Store.Delete(ctx, key); err != nil {
			return gone, err
		}
		gone = true
	}
	return true, nil
}
