package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestRecoverByGuard recovers a lost quorum with the data of the member that is left, by its
// guard, which is killed at each step: all that was acknowledged is there, also what was only
// in the write-ahead log, in an etcd that is who was recorded beforehand. No other member of
// the etcd that was lost starts, and new ones join.
func TestRecoverByGuard(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v3.6.14", "v3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			testRecoverByGuard(newGuarded(t, version))
		})
	}
}

// kept is what was acknowledged: the revision of each key.
type kept struct {
	keys map[string]int64
	last int64
}

func testRecoverByGuard(g *guarded) {
	const lineage = "5d0ff9a6-4ab0-4f4c-8a5e-6f0b0f2f1a77"
	// What is written is in no database before the member ends in order.
	g.flags = map[string][]string{m0: {"--backend-batch-interval=1h", "--backend-batch-limit=1000000"}}
	g.forms(m0, m1, m2)
	before := g.writes(300)
	g.empties(m1)
	g.kill(m2)
	g.kill(m0)
	if revision := g.databaseRevision(m0); revision >= before.last {
		g.t.Fatalf("the database of %s is at revision %d, and %d is to be in the log alone", m0, revision, before.last)
	}

	late := maps.Clone(g.mounted)
	g.approves(lineage, before.last)
	recovered := g.mounted
	g.lates(late, recovered)
	g.damages(before.last)
	g.approves("another", before.last+1)
	g.fails("its data has less than was approved", fmt.Sprintf("the data of %s ends at revision %d, and the recovery was approved for data up to %d at least", m0, before.last, before.last+1))
	g.approves(lineage, before.last)
	old := filepath.Join(g.volume(m0), "recovery", lineage, "old")
	for _, step := range []string{"copying ", "starting etcd on the copy", "saving a snapshot", "ends at revision", "restoring the snapshot", "recovered; "} {
		<-g.startUntil(m0, step).done
		if said := g.processes[m0].said(); !strings.Contains(said, step) {
			g.t.Fatalf("it has ended before it was at %q: %s", step, said)
		}
	}
	g.start(m0)
	g.holds(before, recovered)
	g.refuses("its data is lost", "has no data, but cluster "+recovered["cluster-id"])
	g.foreign("it has the data of the etcd that was lost", m2, "but cluster "+recovered["cluster-id"])

	var after int64
	g.use(m0, "the recovered etcd to take a write", func(ctx context.Context, client *clientv3.Client) error {
		put, err := client.Put(ctx, "after", "kept")
		if err == nil {
			after = put.Header.Revision
		}
		return err
	})
	before.keys["after"] = after
	g.kill(m0)
	g.start(m0)
	g.holds(before, recovered) // the second time, nothing is recovered
	if _, err := os.Stat(old); err != nil {
		g.t.Errorf("the data of before is gone before the recovery is recorded as completed: %v", err)
	}
	g.kill(m0)
	g.record(map[string]string{"recovery": ""})
	g.start(m0)
	g.holds(before, recovered)
	if _, err := os.Stat(filepath.Dir(filepath.Dir(old))); !errors.Is(err, os.ErrNotExist) {
		g.t.Errorf("what the recovery has left takes space: %v", err)
	}

	g.empties(m2)
	for _, name := range []string{m1, m2} {
		id := g.learner(name)
		g.record(map[string]string{"members": g.mounted["members"] + "," + name, "joining": name, "member-id." + name: fmt.Sprintf("%x", id)})
		g.start(name)
		g.promotes(id)
		g.serves(name)
	}
}

// TestRecoverCorruptByGuard recovers with the data of a member where etcd's alarm CORRUPT was
// raised when the quorum was lost: where that names another member, it is disarmed, and the new
// etcd takes writes; where it names this one or none, its data is not used.
func TestRecoverCorruptByGuard(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ version, names, says string }{
		{"v3.6.14", m1, ""},
		{"v3.7.3", m1, ""},
		{"v3.7.3", m0, "etcd's alarm CORRUPT names it (ID "},
		{"v3.7.3", "", "etcd's alarm CORRUPT names no member"},
	} {
		t.Run(test.version+" "+test.names, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t, test.version)
			g.forms(m0, m1, m2)
			before := g.writes(20)
			g.corrupt(test.names)
			g.empties(m1)
			g.kill(m2)
			g.kill(m0)
			data := listing(t, g.data(m0))
			g.approves("lineage", before.last)
			if test.says != "" {
				for range 2 { // it would find the same at the next start
					g.fails("the alarm is about its data", test.says)
				}
				if now := listing(t, g.data(m0)); !reflect.DeepEqual(now, data) {
					t.Errorf("its data was changed: %v, before %v", now, data)
				}
				return
			}
			g.start(m0)
			g.holds(before, g.mounted)
			if said := g.processes[m0].said(); !strings.Contains(said, "is disarmed in the copy") {
				t.Errorf("it does not say that an alarm was disarmed: %s", said)
			}
			g.use(m0, "a write, which the alarm refuses", func(ctx context.Context, client *clientv3.Client) error {
				_, err := client.Put(ctx, "after", "written")
				return err
			})
		})
	}
}

// corrupt raises the alarm CORRUPT that names a member, or none for an empty name, and makes sure
// that m0 knows on its disk that it was.
func (g *guarded) corrupt(name string) {
	g.t.Helper()
	id := uint64(0)
	if name != "" {
		var err error
		if id, err = strconv.ParseUint(g.mounted["member-id."+name], 16, 64); err != nil {
			g.t.Fatal(err)
		}
	}
	g.use(m0, "an alarm to be raised", func(ctx context.Context, client *clientv3.Client) error {
		request := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: id, Alarm: pb.AlarmType_CORRUPT}
		_, err := pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, request)
		if err != nil {
			return err
		}
		_, err = client.AlarmList(ctx) // an entry of the log, too
		return err
	})
}

// writes writes keys, again and again, and makes sure that m0 knows on its disk that they were
// acknowledged.
func (g *guarded) writes(n int) kept {
	g.t.Helper()
	out := kept{keys: map[string]int64{}}
	g.use(m0, "keys to be written", func(_ context.Context, client *clientv3.Client) error {
		for i := range n {
			key := fmt.Sprintf("keys/%d", i%(n-n/4))
			put, err := client.Put(g.t.Context(), key, fmt.Sprintf("value %d", i))
			if err != nil {
				return err
			}
			out.keys[key], out.last = put.Header.Revision, put.Header.Revision
		}
		// With each entry of its log a member writes which ones before were committed. This one
		// has no revision.
		_, err := client.Grant(g.t.Context(), 3600)
		return err
	})
	return out
}

// databaseRevision returns the revision of a member's database, without its log.
func (g *guarded) databaseRevision(name string) int64 {
	g.t.Helper()
	path := filepath.Join(g.t.TempDir(), "db")
	content, err := os.ReadFile(filepath.Join(g.data(name), "member", "snap", "db"))
	if err := errors.Join(err, os.WriteFile(path, content, 0o600)); err != nil {
		g.t.Fatal(err)
	}
	out, err := exec.CommandContext(g.t.Context(), g.etcdutl, "snapshot", "status", path, "--write-out=json").Output()
	var status struct {
		Revision int64 `json:"revision"`
	}
	if err := errors.Join(err, json.Unmarshal(out, &status)); err != nil {
		g.t.Fatalf("%v: %s", err, out)
	}
	return status.Revision
}

// approves records that the quorum is recovered with the data of m0, and who that will be.
func (g *guarded) approves(lineage string, revision int64) {
	g.t.Helper()
	lost := contract.Recovery{Lineage: lineage, Member: m0, ClusterID: g.mounted["cluster-id"], MemberID: g.mounted["member-id."+m0]}
	if recorded := g.mounted["recovery"]; recorded != "" { // approved before
		if err := json.Unmarshal([]byte(recorded), &lost); err != nil {
			g.t.Fatal(err)
		}
	}
	lost.Lineage, lost.Revision = lineage, revision
	text, err := json.Marshal(lost)
	if err != nil {
		g.t.Fatal(err)
	}
	next := etcd.RestoredRecord(etcd.Record{}, m0, g.peer(m0), lineage, etcd.Restored{})
	g.mounted = map[string]string{"initial-cluster-state": "existing", "cluster-id": next.ClusterID, "member-id." + m0: next.Members[m0], "members": m0, "lineage": lineage, "recovery": string(text)}
	g.passed = maps.Clone(g.mounted)
}

// lates starts members whose record is late, in the volume or in what kubelet passes.
func (g *guarded) lates(before, after map[string]string) {
	g.t.Helper()
	for _, test := range []struct {
		reason, member  string
		mounted, passed map[string]string
		says            string
	}{
		{"the volume of the member that is left is late", m0, before, after, "one of them is late"},
		{"what was passed to it is late", m0, after, before, "one of them is late"},
		{"the volume of another member is late", m2, before, after, "is recovered with another member"},
	} {
		g.mounted, g.passed = test.mounted, test.passed
		g.exits(test.reason, test.member, test.says, contract.GuardWaits)
	}
	g.mounted, g.passed = after, maps.Clone(after)
}

// damages starts m0 with a log that is damaged in the middle, or has lost its end, and repairs
// it.
func (g *guarded) damages(last int64) {
	g.t.Helper()
	segments, err := filepath.Glob(filepath.Join(g.data(m0), "member", "wal", "*.wal"))
	if err != nil || len(segments) != 1 {
		g.t.Fatalf("its log is %v, %v", segments, err)
	}
	whole, err := os.ReadFile(segments[0])
	if err != nil {
		g.t.Fatal(err)
	}
	at := bytes.Index(whole, []byte("keys/100"))
	for _, test := range []struct {
		reason, says string
		change       func([]byte)
	}{
		{"an entry is damaged", "etcd does not start on a copy of the data: it has ended", func(log []byte) { log[at] ^= 0xff }},
		{"its end is cut", fmt.Sprintf("the recovery was approved for data up to %d at least", last), func(log []byte) { clear(log[(at+511)/512*512:]) }}, // as a disk does that loses sectors
	} {
		damaged := bytes.Clone(whole)
		test.change(damaged)
		if err := os.WriteFile(segments[0], damaged, 0o600); err != nil {
			g.t.Fatal(err)
		}
		g.fails(test.reason, test.says)
	}
	if err := os.WriteFile(segments[0], whole, 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// fails has the member's guard fail to recover its data.
func (g *guarded) fails(reason, says string) {
	g.t.Helper()
	g.exits(reason, m0, says, contract.GuardUnrecovered)
}

// foreign starts a member that has data which is not its own.
func (g *guarded) foreign(reason, name, says string) {
	g.t.Helper()
	g.exits(reason, name, says, contract.GuardForeign)
}

// exits starts a member which the guard does not let start, and returns all that it said.
func (g *guarded) exits(reason, name, says string, code int) (said string) {
	g.t.Helper()
	p := g.start(name)
	select {
	case <-p.done:
	case <-time.After(framework.Patience):
		g.t.Fatalf("%s: member %s runs: %s", reason, name, p.said())
	}
	if said = p.said(); p.ProcessState.ExitCode() != code || !strings.Contains(said, says) {
		g.t.Fatalf("%s: exit code %d: %s; want %q", reason, p.ProcessState.ExitCode(), said, says)
	}
	return said
}

// holds waits until m0 serves, and expects what was acknowledged, each key at its revision, in
// an etcd of this member that is who was recorded.
func (g *guarded) holds(want kept, record map[string]string) {
	g.t.Helper()
	g.use(m0, "the recovered etcd to serve", func(ctx context.Context, client *clientv3.Client) error {
		got, err := client.Get(ctx, "", clientv3.WithPrefix())
		if err != nil {
			return err
		}
		found := map[string]int64{}
		for _, kv := range got.Kvs {
			found[string(kv.Key)] = kv.ModRevision
		}
		delete(found, "key") // from when it formed
		if !maps.Equal(found, want.keys) || got.Header.Revision < want.last+1_000_000_000 {
			g.t.Errorf("it has %v at revision %d, and acknowledged were %v up to %d", found, got.Header.Revision, want.keys, want.last)
		}
		switch _, err := client.Get(ctx, "key", clientv3.WithRev(want.last)); {
		case err == nil:
			g.t.Error("a revision of before can be read")
		case !errors.Is(err, rpctypes.ErrCompacted):
			return err
		}
		list, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		if len(list.Members) != 1 || fmt.Sprintf("%x", list.Header.ClusterId) != record["cluster-id"] || fmt.Sprintf("%x", list.Members[0].ID) != record["member-id."+m0] {
			g.t.Errorf("it is cluster %x with %v, and recorded was %v", list.Header.ClusterId, list.Members, record)
		}
		return nil
	})
}
