package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Agree returns nil when all members hold the same data: the hash of all keys up
// to one revision is the same everywhere. A compaction between the questions is an
// error, too: ask again then.
func (a Access) Agree(ctx context.Context) error {
	var revision int64
	hash := func(name string) (*pb.HashKVResponse, error) {
		var answer *pb.HashKVResponse
		err := a.call(ctx, name, func(ctx context.Context, client *clientv3.Client) (err error) {
			answer, err = pb.NewMaintenanceClient(client.ActiveConnection()).HashKV(ctx, &pb.HashKVRequest{Revision: revision})
			return rpctypes.Error(err)
		})
		return answer, err
	}
	if err := a.any(ctx, func(ctx context.Context, client *clientv3.Client) error {
		answer, err := client.Get(ctx, "revision")
		if err == nil {
			revision = answer.Header.Revision
		}
		return err
	}); err != nil {
		return err
	}
	var first *pb.HashKVResponse
	firstName := ""
	for name := range a.Endpoints {
		answer, err := hash(name)
		switch {
		case err != nil:
			return err
		case first == nil:
			first, firstName = answer, name
		case answer.CompactRevision != first.CompactRevision:
			return fmt.Errorf("etcd was compacted while its members' data was compared")
		case answer.Hash != first.Hash:
			return fmt.Errorf("members %s and %s hold different data at revision %d", firstName, name, revision)
		}
	}
	return nil
}
