package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
// is done as well when that was compacted before. When the time is up, which is an error
// here, etcd continues. Other members may be a little behind.
func (a Access) Compact(ctx context.Context, revision int64) error {
	a.Timeout = max(cmp.Or(a.Timeout, compactTime), compactTime)
	err := a.any(ctx, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical())
		if errors.Is(err, rpctypes.ErrCompacted) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("compact the history before revision %d: %w", revision, err)
	}
	return nil
}
