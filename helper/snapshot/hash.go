package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/internal/contract"
)

// Hash returns the hash of all keys at a revision, on which all members agree that answer.
// They have to be a majority: a member that is down does not keep etcd from being saved.
func (e Etcd) Hash(ctx context.Context, revision int64) (contract.KeysHash, error) {
	var agreed contract.KeysHash
	var first string
	var errs []error
	for _, endpoint := range e.Endpoints {
		one, err := e.hash(ctx, endpoint, revision)
		switch {
		case errors.Is(err, errCompacted):
			return contract.KeysHash{}, err
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", endpoint, err))
			continue
		case agreed.Members == 0:
			agreed, first = one, endpoint
		case one.CompactRevision != agreed.CompactRevision:
			return contract.KeysHash{}, errCompacted
		case one.Hash != agreed.Hash:
			return contract.KeysHash{}, fmt.Errorf("%s and %s hold different data at revision %d: one of them is corrupt, so none is saved; find out which by \"etcdctl endpoint hashkv --rev=%d\", and replace it", first, endpoint, revision, revision)
		}
		agreed.Members++
	}
	if 2*agreed.Members <= len(e.Endpoints) {
		return contract.KeysHash{}, fmt.Errorf("only %d of %d etcd members say what data they hold at revision %d, and a majority is needed: %w", agreed.Members, len(e.Endpoints), revision, errors.Join(errs...))
	}
	return agreed, nil
}

// hash asks one member.
func (e Etcd) hash(ctx context.Context, endpoint string, revision int64) (one contract.KeysHash, err error) {
	err = e.call(ctx, endpoint, reading, func(ctx context.Context, client *clientv3.Client) error {
		// By a linearizable read, which does not wait long for a member that is cut off, the
		// member catches up with the revision.
		read, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("it does not complete a linearizable read within 10s"))
		defer cancel()
		if _, err := client.Get(read, "any", clientv3.WithCountOnly()); err != nil {
			return cmp.Or(context.Cause(read), err)
		}
		answer, err := pb.NewMaintenanceClient(client.ActiveConnection()).HashKV(ctx, &pb.HashKVRequest{Revision: revision})
		if err = rpctypes.Error(err); errors.Is(err, rpctypes.ErrCompacted) {
			return errCompacted
		}
		if err != nil {
			return err
		}
		one = contract.KeysHash{Hash: answer.Hash, CompactRevision: answer.CompactRevision}
		return nil
	})
	return one, err
}
