package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestNoSpace fills an etcd: with history, which is compacted and defragmented away, and
// with live data, for which its quota grows while the alarm is raised. What makes room ends
// the alarm, nothing else does, and all that was acknowledged is there at the end.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	members := framework.StartEtcdVersion(t, "v3.7.3", 3, "--quota-backend-bytes=25165824")
	access := accessTo(members)
	_, recorded := recordIdentity(t, access, 3)
	wrote := map[string][]string{}

	fillEtcd(t, members, wrote, func(int) string { return "/history" })
	heldFull(t, access, recorded)
	makeRoom(t, access, recorded, true)
	disarm(t, members, access, recorded, wrote)

	fillEtcd(t, members, wrote, func(i int) string { return fmt.Sprintf("/live/%d", i) })
	heldFull(t, access, recorded)
	for i := range 3 {
		name := fmt.Sprintf("m%d", i)
		framework.Eventually(t, name+" to get a larger quota", func(ctx context.Context) error {
			return access.Observe(ctx).Gate(recorded, name, etcd.AlarmNoSpace)
		})
		if err := access.Observe(t.Context()).Full(recorded); err == nil {
			t.Errorf("there is room before %s has its quota", name)
		}
		members.Kill(i)
		members.AddFlags(i, "--quota-backend-bytes=50331648")
		members.Start(i)
	}
	disarm(t, members, access, recorded, wrote)
	expectAgreed(t, access)
}

// TestNoSpaceSingle has the history of a single member compacted and defragmented away.
func TestNoSpaceSingle(t *testing.T) {
	t.Parallel()
	members := framework.StartEtcdVersion(t, "v3.6.14", 1, "--quota-backend-bytes=25165824")
	access := accessTo(members)
	_, recorded := recordIdentity(t, access, 1)
	wrote := map[string][]string{}
	fillEtcd(t, members, wrote, func(int) string { return "/history" })
	heldFull(t, access, recorded)
	makeRoom(t, access, recorded, false)
	disarm(t, members, access, recorded, wrote)
}

// makeRoom has the operator compact and defragment an etcd that is full of history, and
// expects that it drops no more than it should. Where no revision is known that is old
// enough, it compacts only if the free pages that there are don't suffice.
func makeRoom(t *testing.T, access etcd.Access, recorded etcd.Identity, known bool) {
	t.Helper()
	m, before := newMaintainer(access, recorded), access.Observe(t.Context())
	if known {
		m.revisions.Note("etcd", etcd.Seen{Revision: before.Revision(), Time: m.now.Add(-etcd.History)})
	}
	framework.Eventually(t, "the operator to make room", func(ctx context.Context) error {
		says := m.reconcile(ctx, t)
		if err := m.access.Observe(ctx).Full(recorded); err != nil || m.status != nil {
			return fmt.Errorf("%s: %w", says, errors.Join(err, errors.New("it is under way")))
		}
		return nil
	})
	c := m.etcd.Compaction
	made := c != nil && c.CompletionTime != nil
	if known && !made || made && (c.CompletionTime.Sub(c.RevisionTime.Time) < etcd.History || c.Revision < before.Revision()) {
		t.Errorf("at revision %d it compacted %+v", before.Revision(), c)
	}
	if len(m.done) != len(recorded.Members) {
		t.Errorf("%v were defragmented", m.done)
	}
}

// noValue stands for no value, of a key of which no write was acknowledged.
const noValue = ""

// fillEtcd writes until etcd refuses, and notes what each key may hold: what was
// acknowledged last and, since etcd applies the write by which it notices that it is full,
// what was refused.
func fillEtcd(t *testing.T, members *framework.Etcd, wrote map[string][]string, key func(int) string) {
	t.Helper()
	for i := range 1000 {
		// Small enough that nearly all of the file is in use when it is full.
		value := strings.Repeat("x", 32<<10) + fmt.Sprint(i)
		switch _, err := members.Client.Put(t.Context(), key(i), value); {
		case errors.Is(err, rpctypes.ErrNoSpace):
			if len(wrote[key(i)]) == 0 {
				wrote[key(i)] = []string{noValue}
			}
			wrote[key(i)] = append(wrote[key(i)], value)
			return
		case err != nil: // a busy machine has elections
			if len(wrote[key(i)]) == 0 {
				wrote[key(i)] = []string{noValue}
			}
			wrote[key(i)] = append(wrote[key(i)], value)
			continue
		}
		wrote[key(i)] = []string{value}
	}
	t.Fatal("it is never full")
}

// orSingle drops the error that a single member has none to take its place.
func orSingle(err error) error {
	if errors.Is(err, etcd.ErrSingleMember) {
		return nil
	}
	return err
}

// heldFull expects that an etcd which is full stays so.
func heldFull(t *testing.T, access etcd.Access, recorded etcd.Identity) {
	t.Helper()
	s := etcd.State{}
	framework.Eventually(t, "all members to be ready but for the accepted alarm", func(ctx context.Context) error {
		s = access.Observe(ctx)
		return orSingle(s.Gate(recorded, "m0", etcd.AlarmNoSpace))
	})
	if alarm, raised := s.Raised(); !raised || alarm.Type != etcd.AlarmNoSpace {
		t.Fatalf("it is not full: %+v", s)
	}
	if err := s.Full(recorded); err == nil || !strings.Contains(err.Error(), "and its quota is 24 MiB") {
		t.Errorf("it is full: %v", err)
	}
	if err := s.Gate(recorded, "m0"); err == nil || !strings.Contains(err.Error(), "NOSPACE") {
		t.Errorf("a member may be taken down: %v", err)
	}
}

// disarm waits until there is room and ends the alarm, after which writes succeed, and
// expects all that was acknowledged.
func disarm(t *testing.T, members *framework.Etcd, access etcd.Access, recorded etcd.Identity, wrote map[string][]string) {
	t.Helper()
	framework.Eventually(t, "room", func(ctx context.Context) error { return access.Observe(ctx).Full(recorded) })
	framework.Eventually(t, "a write to be refused before the alarm is disarmed", func(ctx context.Context) error {
		_, err := members.Client.Put(ctx, "/refused", "")
		switch {
		case err == nil:
			t.Error("a write succeeds before the alarm is disarmed")
		case !errors.Is(err, rpctypes.ErrNoSpace):
			return err
		}
		return nil
	})
	for range 2 { // the second is one of an operator that was killed after the first
		framework.Eventually(t, "the alarm to be disarmed", func(ctx context.Context) error { return access.DisarmNoSpace(ctx, access.Observe(ctx)) })
	}
	framework.Eventually(t, "all to be in order after the alarm", func(ctx context.Context) error { return orSingle(access.Observe(ctx).Gate(recorded, "m0")) })
	wrote["/after"] = []string{time.Now().String()}
	framework.Eventually(t, "a write after the alarm is disarmed", func(ctx context.Context) error {
		_, err := members.Client.Put(ctx, "/after", wrote["/after"][0])
		return err
	})
	for key, values := range wrote {
		found, err := members.Client.Get(t.Context(), key)
		switch {
		case err != nil:
			t.Error(err)
		case values[0] == noValue && len(found.Kvs) == 0: // and never acknowledged
		case len(found.Kvs) != 1 || !slices.Contains(values, string(found.Kvs[0].Value)):
			t.Errorf("%s is not what was acknowledged", key)
		}
	}
}
