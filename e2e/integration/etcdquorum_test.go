package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestEtcdWithoutQuorum asks the only member that is left of three: without a leader, it says
// up to which revision it has data, which is that of the last write, and no longer once it was
// restarted.
func TestEtcdWithoutQuorum(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v3.6.14", "v3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			testWithoutQuorum(t, framework.StartEtcdVersion(t, version, 3))
		})
	}
}

func testWithoutQuorum(t *testing.T, members *framework.Etcd) {
	access := accessTo(members)
	recordIdentity(t, access, 3)
	var written int64
	for i := range 100 {
		written = put(t, members, fmt.Sprint("key", i), "value")
	}
	framework.Eventually(t, "m0 to have what was written", func(ctx context.Context) error {
		if m := access.Observe(ctx).Members[0]; m.Revision != written { // it may be a follower that is told next
			return fmt.Errorf("%d was written, and it says %+v", written, m)
		}
		return nil
	})
	members.Kill(1)
	members.Kill(2)
	var s etcd.State
	framework.Eventually(t, "m0 to notice", func(ctx context.Context) error {
		s = access.Observe(ctx)
		if left := s.Members[0]; left.Leader != "" || left.Err == nil || left.ID == "" {
			return fmt.Errorf("%+v", left)
		}
		return nil
	})
	if left := s.Members[0]; s.ListErr == nil || left.Revision != written || s.Serving() != 0 {
		t.Errorf("%d was written, and it says %+v; the list: %v", written, left, s.ListErr)
	}
	if left := s.Members[0]; len(left.Voters) != 3 || !slices.Contains(left.Voters, left.ID) {
		t.Errorf("it says that %v have a vote, and is %s", left.Voters, left.ID)
	}
	members.Kill(0)
	members.Start(0)
	if left := access.Observe(t.Context()).Members[0]; left.Err == nil || left.Revision != 0 || left.Leader != "" {
		t.Errorf("it was restarted, and says %+v", left)
	}
}
