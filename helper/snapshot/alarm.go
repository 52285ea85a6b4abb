package snapshot

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Corrupt returns the IDs of the members that its alarm CORRUPT names, 0 where it could not say
// which ones hold other data than the rest. It waits as Ready does. The alarms that its log has are
// raised by then.
func (s *Server) Corrupt(ctx context.Context, within time.Duration) (named []uint64, err error) {
	err = s.await(ctx, within, func(ctx context.Context) error {
		return s.call(ctx, s.Endpoints[0], 10*time.Second, func(ctx context.Context, client *clientv3.Client) error {
			list, err := client.AlarmList(ctx)
			if err != nil {
				return err
			}
			named = nil
			for _, alarm := range list.Alarms {
				if alarm.Alarm == pb.AlarmType_CORRUPT {
					named = append(named, alarm.MemberID)
				}
			}
			return nil
		})
	})
	return named, err
}

// DisarmCorrupt ends the alarms CORRUPT that name members, which becomes a part of its data.
func (s *Server) DisarmCorrupt(ctx context.Context, named []uint64) error {
	return s.call(ctx, s.Endpoints[0], 10*time.Second, func(ctx context.Context, client *clientv3.Client) error {
		for _, id := range named {
			if _, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: id, Alarm: pb.AlarmType_CORRUPT}); err != nil {
				return err
			}
		}
		return nil
	})
}
