package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// MoveLeader hands the leadership over to the follower that has applied most,
// by a call to the leader itself. The State should be fresh. When the
// leadership has moved since, etcd refuses, and there is nothing to undo.
func (a Access) MoveLeader(ctx context.Context, s State) error {
	from, to, err := s.handover()
	if err != nil {
		return fmt.Errorf("the leadership can't be moved: %w", err)
	}
	target, err := strconv.ParseUint(to.ID, 16, 64)
	if err != nil {
		return fmt.Errorf("the leadership can't be moved: member %s has the ID %q: %w", to.Name, to.ID, err)
	}
	err = a.call(ctx, from.Name, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MoveLeader(ctx, target)
		return err
	})
	if err != nil {
		return fmt.Errorf("move the leadership from %s to %s: %w", from.Name, to.Name, err)
	}
	return nil
}

// handover returns the leader and who should lead in its place.
func (s State) handover() (from, to Member, err error) {
	serving := s.serving()
	i := slices.IndexFunc(serving, Member.Leads)
	if i < 0 {
		return from, to, errors.New("no leader is ready")
	}
	from = serving[i]
	followers := slices.DeleteFunc(serving, func(m Member) bool { return m.ID == from.ID || m.Learner || m.Leader != from.ID })
	if len(followers) == 0 {
		return from, to, errors.New("no ready follower of " + from.Name)
	}
	return from, slices.MaxFunc(followers, func(a, b Member) int { return cmp.Compare(a.AppliedIndex, b.AppliedIndex) }), nil
}
