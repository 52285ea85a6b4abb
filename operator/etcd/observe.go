package etcd

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Observe asks all members at once, each at its own endpoint, how they are.
// Then it asks one that answered for the list of members and the alarms. It
// takes at most twice the timeout, however many members are dead. What went
// wrong is part of the State.
func (a Access) Observe(ctx context.Context) State {
	names := slices.Sorted(maps.Keys(a.Endpoints))
	s := State{Members: make([]Member, len(names))}
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { s.Members[i] = a.observeMember(ctx, name) })
	}
	group.Wait()
	s.observeList(ctx, a)
	return s
}

func (a Access) observeMember(ctx context.Context, name string) Member {
	m := Member{Name: name, Endpoint: a.Endpoints[name]}
	m.Err = a.call(ctx, name, func(ctx context.Context, client *clientv3.Client) error {
		// The client's own Status would open another connection.
		status, err := pb.NewMaintenanceClient(client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
		if err != nil {
			return rpctypes.Error(err)
		}
		m.ClusterID, m.ID, m.Leader = id(status.Header.ClusterId), id(status.Header.MemberId), id(status.Leader)
		m.Version, m.StorageVersion, m.DBSize, m.DBSizeInUse, m.Quota, m.Errors = status.Version, status.StorageVersion, status.DbSize, status.DbSizeInUse, status.DbSizeQuota, status.Errors
		m.Revision, m.Learner, m.Term, m.CommittedIndex, m.AppliedIndex = status.Header.Revision, status.IsLearner, status.RaftTerm, status.RaftIndex, status.RaftAppliedIndex
		if m.Leader == "" {
			m.Voters = votersKnownTo(ctx, client)
		}
		m.Position, err = read(ctx, client)
		if err != nil && !errors.Is(err, rpctypes.ErrPermissionDenied) {
			// A refusal comes after the members have agreed, so it counts.
			return readError{err, m.Leader != ""}
		}
		m.Revision = max(m.Revision, m.Position.Revision) // by then, it has applied all that was acknowledged before
		return nil
	})
	return m
}

// votersKnownTo returns the voters by what a member itself has applied, nothing when it does not say.
func votersKnownTo(ctx context.Context, client *clientv3.Client) (voters []string) {
	list, err := client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return nil // it is one more thing that is not known of a member that does not serve
	}
	for _, m := range list.Members {
		if !m.IsLearner {
			voters = append(voters, id(m.ID))
		}
	}
	return voters
}

// observeList prefers a member that serves. The next best is one that has a
// leader: reads may fail, but alarms can be read.
func (s *State) observeList(ctx context.Context, a Access) {
	i := slices.IndexFunc(s.Members, func(m Member) bool { return m.Err == nil })
	if i < 0 {
		i = slices.IndexFunc(s.Members, func(m Member) bool { return m.Leader != "" })
	}
	if i < 0 {
		s.ListErr = errors.New("no member answers that has a leader")
		return
	}
	s.ListErr = a.call(ctx, s.Members[i].Name, func(ctx context.Context, client *clientv3.Client) error {
		list, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		alarms, err := client.AlarmList(ctx)
		if err != nil {
			return err
		}
		for _, m := range list.Members {
			s.List = append(s.List, Listed{ID: id(m.ID), Name: m.Name, PeerURLs: m.PeerURLs, Learner: m.IsLearner})
		}
		for _, alarm := range alarms.Alarms {
			s.Alarms = append(s.Alarms, Alarm{MemberID: id(alarm.MemberID), Type: alarm.Alarm.String()})
		}
		return nil
	})
}

// id formats an ID as etcdctl does; that of no one is empty.
func id(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 16)
}
