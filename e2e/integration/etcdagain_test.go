package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/etcd"
)

// put writes a key, again where it is not known whether it was written: a busy computer has
// elections. It returns the revision of the last write.
func put(t *testing.T, etcd *framework.Etcd, key, value string, options ...clientv3.OpOption) (revision int64) {
	t.Helper()
	framework.Eventually(t, "etcd to take a write", func(ctx context.Context) error {
		answer, err := etcd.Client.Put(ctx, key, value, options...)
		if err == nil {
			revision = answer.Header.Revision
		}
		return err
	})
	return revision
}

// compact drops the history before a revision from the files of a member, again where it is
// not known whether it was.
func compact(t *testing.T, members *framework.Etcd, revision int64) {
	t.Helper()
	framework.Eventually(t, "etcd to be compacted", func(ctx context.Context) error {
		_, err := members.Client.Compact(ctx, revision, clientv3.WithCompactPhysical())
		if errors.Is(err, rpctypes.ErrCompacted) {
			return nil
		}
		return err
	})
}

// adding returns what adds a member to etcd by one attempt, with MemberAdd or
// MemberAddAsLearner, and says its ID.
func adding(id *uint64, peer string, add func(*clientv3.Client, context.Context, []string) (*clientv3.MemberAddResponse, error)) func(context.Context, *clientv3.Client) error {
	added := unlessDone(rpctypes.ErrPeerURLExist, func(ctx context.Context, client *clientv3.Client) error {
		_, err := add(client, ctx, []string{peer})
		return err
	})
	return func(ctx context.Context, client *clientv3.Client) error {
		if err := added(ctx, client); err != nil {
			return err
		}
		list, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range list.Members {
			if slices.Contains(m.PeerURLs, peer) {
				*id = m.ID
				return nil
			}
		}
		return fmt.Errorf("no member is at %s: %v", peer, list.Members)
	}
}

// removing returns what removes a member by one attempt.
func removing(id uint64) func(context.Context, *clientv3.Client) error {
	return unlessDone(rpctypes.ErrMemberNotFound, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberRemove(ctx, id)
		return err
	})
}

// unlessDone returns what does something by one attempt. An error by which a later attempt is
// refused says that an earlier one has done it, whose answer was lost.
func unlessDone(says error, do func(context.Context, *clientv3.Client) error) func(context.Context, *clientv3.Client) error {
	again := false
	return func(ctx context.Context, client *clientv3.Client) error {
		err := do(ctx, client)
		if again && errors.Is(err, says) {
			return nil
		}
		again = true
		return err
	}
}

// use has a client of etcd do something, again until it succeeds.
func use(t *testing.T, members *framework.Etcd, what string, do func(context.Context, *clientv3.Client) error) {
	t.Helper()
	framework.Eventually(t, what, func(ctx context.Context) error { return do(ctx, members.Client) })
}

// expectAgreed expects all members to hold the same data, once all say which.
func expectAgreed(t *testing.T, access etcd.Access) {
	t.Helper()
	framework.Eventually(t, "all members to say which data they hold", func(ctx context.Context) error {
		err := access.Agree(ctx)
		if differs := new(etcd.DataDiffers); errors.As(err, &differs) {
			t.Error(err)
			return nil
		}
		return err
	})
}
