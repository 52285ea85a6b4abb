package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Among returns the access to those members only that are named.
func (a Access) Among(names ...string) Access {
	a.Endpoints = maps.Clone(a.Endpoints)
	maps.DeleteFunc(a.Endpoints, func(name, _ string) bool { return !slices.Contains(names, name) })
	return a
}

// AddLearner adds a member at a URL for members to etcd, as a learner: it has no vote until
// it is promoted. Etcd refuses a second learner, and a URL that a member has.
func (a Access) AddLearner(ctx context.Context, s State, peerURL string) error {
	err := a.change(ctx, s, "", func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberAddAsLearner(ctx, []string{peerURL})
		return err
	})
	if err != nil {
		return fmt.Errorf("add a learner at %s: %w", peerURL, err)
	}
	return nil
}

// Promote gives the learner with the ID a vote. Etcd refuses that while it lacks more than
// a tenth of the log.
func (a Access) Promote(ctx context.Context, s State, memberID string) error {
	id, err := parseID(memberID)
	if err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	err = a.change(ctx, s, memberID, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberPromote(ctx, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("promote member ID %s: %w", memberID, err)
	}
	return nil
}

// Remove removes the member with the ID from etcd, for good: another one that takes its
// place gets another ID.
func (a Access) Remove(ctx context.Context, s State, memberID string) error {
	id, err := parseID(memberID)
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	err = a.change(ctx, s, memberID, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberRemove(ctx, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove member ID %s: %w", memberID, err)
	}
	return nil
}

// parseID reads an ID as a State has it.
func parseID(text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not the ID of a member: %w", text, err)
	}
	return id, nil
}

// change lets do change etcd's members through one that serves, and is not the one with the
// given ID: the leader, where it is not that one, since a change that another member passes on
// fails when the leader changes. While the alarm CORRUPT is raised, no member counts as serving,
// and one that has a leader will do.
func (a Access) change(ctx context.Context, s State, without string, do func(context.Context, *clientv3.Client) error) error {
	unfit := func(m Member) bool { return m.ID == without || m.Learner }
	serving := slices.DeleteFunc(s.serving(), unfit)
	if alarm, _ := s.Raised(); alarm.Type == AlarmCorrupt {
		serving = slices.DeleteFunc(slices.Clone(s.Members), func(m Member) bool { return unfit(m) || m.Leader == "" })
	}
	if len(serving) == 0 {
		return errors.New("no other member is ready")
	}
	through := serving[0]
	if i := slices.IndexFunc(serving, Member.Leads); i >= 0 {
		through = serving[i]
	}
	return a.call(ctx, through.Name, do)
}
