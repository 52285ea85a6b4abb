package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// History is how old a revision must be for the history before it to be dropped: as long
// as the API servers keep it, for lists and watches that began there.
const History = 5 * time.Minute

// compactTime is how long Compact waits, unless Access.Timeout is longer.
const compactTime = 10 * time.Second

// Revision returns a revision that all members which serve have applied, zero when it is
// not known.
func (s State) Revision() int64 {
	var oldest int64
	for _, m := range s.serving() {
		if oldest == 0 || m.Revision < oldest {
			oldest = m.Revision
		}
	}
	return oldest
}

// Compact drops the history before a revision, which etcd allows while NOSPACE is raised. It
// is done when every member has dropped it from its file. When the time is up, which is an
// error here, etcd continues: ask again then. Each member answers for itself alone, after all
// compactions that it has begun, also where the one that is asked for was made before.
func (a Access) Compact(ctx context.Context, revision int64) error {
	a.Timeout = max(cmp.Or(a.Timeout, compactTime), compactTime)
	names := slices.Sorted(maps.Keys(a.Endpoints))
	if len(names) == 0 {
		return errors.New("compact the history: no etcd member is known")
	}
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			errs[i] = a.call(ctx, name, func(ctx context.Context, client *clientv3.Client) error {
				_, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical())
				if errors.Is(err, rpctypes.ErrCompacted) {
					return nil
				}
				return err
			})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the compaction of the history before revision %d is not known to be complete, and is asked for again: %w", revision, err)
	}
	return nil
}
