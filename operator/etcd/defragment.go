package etcd

import (
	"cmp"
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A member is fragmented when at least this much of its file is free, in percent and in
// bytes.
const (
	fragmentedShare = 45
	fragmentedBytes = 100 << 20
)

// Fragmented reports whether so much of a member's file is free that a defragmentation is
// worth that the member answers nothing meanwhile.
func (m Member) Fragmented() bool {
	free := m.DBSize - m.DBSizeInUse
	return m.Err == nil && free >= fragmentedBytes && free >= m.DBSize/100*fragmentedShare
}

// defragmentTime is how long Defragment waits for a member, unless Access.Timeout is longer.
const defragmentTime = 10 * time.Second

// Defragment has a member rewrite its file without what is free in it. The member
// answers nothing meanwhile. It continues when the time is up, which is an error here: that
// it answers again tells that it is through.
func (a Access) Defragment(ctx context.Context, member string) error {
	a.Timeout = max(cmp.Or(a.Timeout, defragmentTime), defragmentTime)
	return a.call(ctx, member, func(ctx context.Context, client *clientv3.Client) error {
		_, err := pb.NewMaintenanceClient(client.ActiveConnection()).Defragment(ctx, &pb.DefragmentRequest{})
		return rpctypes.Error(err)
	})
}
