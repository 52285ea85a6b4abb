package integration

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestEtcdWentBack sets the volumes of two of three members back to older copies together, as
// storage snapshots do: these two elect from what they have, and etcd is below the revision that
// is recorded of it, by as much as was acknowledged since. It stays so recorded however much is
// written then; and by the operator's mark it is noticed, too, where etcd was asked so late.
func TestEtcdWentBack(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v3.6.14", "v3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			testWentBack(t, framework.StartEtcdVersion(t, version, 3))
		})
	}
}

func testWentBack(t *testing.T, members *framework.Etcd) {
	access := accessTo(members)
	_, recorded := recordIdentity(t, access, 3)
	record := etcd.NewRecord(3, "ca", recorded, true)
	writes := func(name string, count int) (revision int64) {
		for i := range count {
			revision = put(t, members, fmt.Sprint(name, i), "value")
		}
		return revision
	}
	writes("before", 19)
	old := mark(t, access).Revision
	allHave(t, access, old)
	copies := map[int]string{}
	for _, i := range []int{1, 2} {
		copies[i] = copyOf(t, members, i)
	}
	newest := writes("lost", 40)
	now := time.Now()
	record, written := record.Follow(observed(t, access, newest).Newest(), 0, now)
	if !written || record.Newest.Revision != newest || record.WentBack != nil {
		t.Fatalf("%d was written, and recorded is %+v, %+v", newest, record.Newest, record.WentBack)
	}
	record.Newest.Position = mark(t, access)
	newest = record.Newest.Revision
	for i := range 3 {
		members.Kill(i)
	}
	for i, saved := range copies {
		setBack(t, members.DataDirs[i], saved)
	}
	members.Start(1)
	members.Start(2)
	set := observed(t, access, old)
	if set.Newest().Revision >= newest || set.Check(recorded) != nil {
		t.Fatalf("two members were set back to %d, and etcd is at %d of %d: %v", old, set.Newest().Revision, newest, set.Check(recorded))
	}
	before := record
	record, written = before.Follow(set.Newest(), 0, now)
	if back := record.WentBack; !written || back == nil || back.From != newest || back.To != set.Newest().Revision || back.Passed {
		t.Fatalf("etcd went back from %d to %d, and recorded is %+v", newest, set.Newest().Revision, back)
	}
	further := observed(t, access, writes("after", 100)).Newest()
	if after, written := record.Follow(further, 0, now.Add(time.Hour)); written || after.WentBack == nil {
		t.Errorf("it has got to %d, and it is forgotten that it went back: %+v", further.Revision, after)
	}
	late, _ := before.Follow(further, 0, now)
	if back := late.WentBack; back == nil || !back.Passed || back.From != newest || back.To != old {
		t.Errorf("it had got from %d to %d when it was asked first, without what was written after %d, and recorded is %+v", newest, further.Revision, old, back)
	}
	if again, err := access.Mark(t.Context(), before.Newest.Position); err == nil {
		t.Errorf("the mark that was lost is written again as if it were there: %+v", again)
	}
}

// mark writes the operator's mark, and checks that etcd has it.
func mark(t *testing.T, access etcd.Access) etcd.Position {
	t.Helper()
	var seen, marked etcd.Position
	framework.Eventually(t, "the mark to be written", func(ctx context.Context) (err error) {
		seen = access.Observe(ctx).Newest() // again: one of which it is not known may have been written
		marked, err = access.Mark(ctx, seen)
		return err
	})
	if marked.Revision <= seen.Revision || marked.Mark != marked.Revision || marked.Upkeep != seen.Upkeep+1 {
		t.Fatalf("at %+v, the mark is written: %+v", seen, marked)
	}
	if has := observed(t, access, marked.Revision).Newest(); has != marked {
		t.Fatalf("the mark was written at %+v, and etcd has %+v", marked, has)
	}
	return marked
}

// allHave waits until all members have a revision.
func allHave(t *testing.T, access etcd.Access, revision int64) {
	t.Helper()
	framework.Eventually(t, "all members to have what was written", func(ctx context.Context) error {
		for _, m := range access.Observe(ctx).Members {
			if m.Err != nil || m.Revision < revision {
				return fmt.Errorf("%d was written, and it says %+v", revision, m)
			}
		}
		return nil
	})
}

// copyOf returns a directory with a copy of what a member has, which is restarted for that.
func copyOf(t *testing.T, members *framework.Etcd, i int) string {
	t.Helper()
	members.Kill(i)
	saved := t.TempDir()
	if err := os.CopyFS(saved, os.DirFS(members.DataDirs[i])); err != nil {
		t.Fatal(err)
	}
	members.Start(i)
	members.WaitServing(i)
	return saved
}

// setBack has the directory of a member, which does not run, have what a copy has.
func setBack(t *testing.T, dir, saved string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(saved)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// observed returns the state of an etcd once it serves a revision, or a newer one.
func observed(t *testing.T, access etcd.Access, revision int64) (s etcd.State) {
	t.Helper()
	framework.Eventually(t, fmt.Sprintf("etcd to serve revision %d", revision), func(ctx context.Context) error {
		if s = access.Observe(ctx); s.Newest().Revision < revision {
			return fmt.Errorf("it is at %d: %s", s.Newest().Revision, s.Failures())
		}
		return nil
	})
	return s
}
