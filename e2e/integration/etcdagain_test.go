package integration

import (
	"context"
	"errors"
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

// addMember adds a member to etcd, by a client's MemberAdd or MemberAddAsLearner, and returns
// its ID.
func addMember(t *testing.T, client *clientv3.Client, peer string, add func(context.Context, []string) (*clientv3.MemberAddResponse, error)) (id uint64) {
	t.Helper()
	again := false
	framework.Eventually(t, "a member to be added", func(ctx context.Context) (err error) {
		id, err = tryAddMember(ctx, client, peer, add, again)
		again = true
		return err
	})
	return id
}

// tryAddMember is one attempt of addMember. Again, it finds the member that an earlier attempt
// has added whose answer was lost.
func tryAddMember(ctx context.Context, client *clientv3.Client, peer string, add func(context.Context, []string) (*clientv3.MemberAddResponse, error), again bool) (uint64, error) {
	added, err := add(ctx, []string{peer})
	if err == nil {
		return added.Member.ID, nil
	}
	if !again || !errors.Is(err, rpctypes.ErrPeerURLExist) {
		return 0, err
	}
	list, listErr := client.MemberList(ctx)
	if listErr != nil {
		return 0, listErr
	}
	for _, m := range list.Members {
		if slices.Contains(m.PeerURLs, peer) {
			return m.ID, nil
		}
	}
	return 0, err
}

// removing returns what removes a member by one attempt. A later one finds that an earlier one
// has, whose answer was lost.
func removing(id uint64) func(context.Context, *clientv3.Client) error {
	return unlessDone(rpctypes.ErrMemberNotFound, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberRemove(ctx, id)
		return err
	})
}

// unlessDone returns what does something by one attempt. An error by which a later attempt is
// refused says that an earlier one has done it.
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
