package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// MarkKey is the key that the operator writes into a registry's own etcd, beside those of
	// the servers: an etcd without what was written there last went back, however far it has
	// got since.
	MarkKey = "/clusterregistry-operator/mark"
	// compactionKey is where the servers' compactor notes each compaction, every five minutes.
	compactionKey = "compact_rev_key"
)

// markText is what is stored there, for a person who finds it.
const markText = "written by the operator of the cluster registry, which notices by it that etcd went back to older data; keep it"

// Position is how far an etcd is.
type Position struct {
	// Revision is the newest one that is known to be acknowledged, zero when none is known.
	Revision int64 `json:"revision"`
	// Mark is the revision at which the operator's mark was written last, zero when it never
	// was.
	Mark int64 `json:"mark,omitempty"`
	// Upkeep is how many revisions there are that change nothing for clients: those of the
	// mark and of the servers' compactor.
	Upkeep int64 `json:"upkeep,omitempty"`
}

// written is how many revisions there are of what clients have written.
func (p Position) written() int64 { return p.Revision - p.Upkeep }

// further returns the position that is further.
func (p Position) further(other Position) Position {
	return Position{max(p.Revision, other.Revision), max(p.Mark, other.Mark), max(p.Upkeep, other.Upkeep)}
}

// read completes a linearizable read, which returns how far etcd is: all that was acknowledged
// before is in there. In an etcd with users, which is no operator's, only the key that says whose
// it is may be readable.
func read(ctx context.Context, client *clientv3.Client) (p Position, err error) {
	answer, err := client.Txn(ctx).Then(clientv3.OpGet(MarkKey), clientv3.OpGet(compactionKey)).Commit()
	if errors.Is(err, rpctypes.ErrPermissionDenied) {
		owner, err := client.Get(ctx, OwnerKey, clientv3.WithCountOnly())
		if err != nil {
			return Position{}, err
		}
		return Position{Revision: owner.Header.Revision}, nil
	}
	if err != nil {
		return Position{}, err
	}
	p.Revision = answer.Header.Revision
	for _, response := range answer.Responses {
		for _, kv := range response.GetResponseRange().GetKvs() {
			p.Upkeep += kv.Version
			if string(kv.Key) == MarkKey {
				p.Mark = kv.ModRevision
			}
		}
	}
	return p, nil
}

// errMarkMoved is the error of a mark that is not where it was seen.
var errMarkMoved = errors.New("it was written since by someone else, or etcd went back at this moment")

// Mark writes the operator's mark where it is where it was seen, and returns how far etcd is
// then.
func (a Access) Mark(ctx context.Context, seen Position) (Position, error) {
	err := a.any(ctx, func(ctx context.Context, client *clientv3.Client) error {
		answer, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(MarkKey), "=", seen.Mark)).Then(clientv3.OpPut(MarkKey, markText)).Commit()
		switch {
		case err != nil:
			return err
		case !answer.Succeeded:
			return errMarkMoved
		}
		seen = Position{answer.Header.Revision, answer.Header.Revision, seen.Upkeep + 1}
		return nil
	})
	if err != nil {
		return seen, fmt.Errorf("write the key %s: %w", MarkKey, err)
	}
	return seen, nil
}
