package integration

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestRestoreMember restores a snapshot as the init container of a member does: killed in the
// middle it is done again, only while the record says so, and never over data. The etcd that
// starts on it is who the operator has recorded beforehand.
func TestRestoreMember(t *testing.T) {
	t.Parallel()
	const version, id = "v3.7.3", "0b9c4b52-7d1f-4b6e-9a51-2f0d7f0c9a11"
	started, snapshots, identity := framework.StartEtcdVersion(t, version, 1), t.TempDir(), t.TempDir()
	put, err := started.Client.Put(t.Context(), "written/before", "kept")
	if err != nil {
		t.Fatal(err)
	}
	save(t, started, snapshots, "s", "")
	list, err := started.Client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	peer, dir := list.Members[0].PeerURLs[0], started.DataDirs[0]
	started.Kill(0)
	if err := os.Rename(dir, dir+"-before"); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(snapshots, "s.db"))
	if err != nil {
		t.Fatal(err)
	}
	side, sum := dir+"-side", fmt.Sprintf("%x", sha256.Sum256(content))
	run := func(exit int, recorded, passed, want string) {
		t.Helper()
		for path, text := range map[string][]byte{filepath.Join(identity, "restore"): []byte(recorded), filepath.Join(side, "snapshot.db"): content} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(framework.Root(t), "bin", "clusterregistry-helper"), "etcd-restore", "--restore="+id, "--member=m0", "--peer-url="+peer,
			"--data-dir="+dir, "--side-dir="+side, "--sha256="+sum, "--identity-dir="+identity, "--etcdutl="+framework.Program(t, "etcd", version, "etcdutl"))
		cmd.Env = append(os.Environ(), "RECORDED_RESTORE="+passed)
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exit || !strings.Contains(string(out), want) {
			t.Fatalf("recorded %q, passed %q: %v, %s, want exit code %d and %q", recorded, passed, err, out, exit, want)
		}
	}
	run(1, "", id, "the record is late")
	run(1, id, "", "the record is late")
	run(0, "another", "another", "nothing is restored")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("it was restored without a record: %v", err)
	}
	// What a restore that was killed has left, and directories, are no data.
	if err := errors.Join(os.MkdirAll(filepath.Join(side, "etcd", "member"), 0o700), os.MkdirAll(filepath.Join(dir, "member"), 0o700)); err != nil {
		t.Fatal(err)
	}
	run(0, id, id, "m0 was restored")
	run(0, id, id, "has data: nothing is restored")
	if _, err := os.Stat(side); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", side, err)
	}
	record := etcd.RestoredRecord(etcd.Record{}, "m0", peer, id, etcd.Restored{})
	guard(t, dir, map[string]string{"initial-cluster-state": "existing", "cluster-id": record.ClusterID, "member-id.m0": record.Members["m0"]}, "has the data of cluster "+record.ClusterID+", member ID "+record.Members["m0"])
	started.Start(0)
	framework.Eventually(t, "etcd to serve what was restored", func(ctx context.Context) error {
		got, err := started.Client.Get(ctx, "written/before")
		if err != nil {
			return err
		}
		if len(got.Kvs) != 1 || got.Kvs[0].ModRevision != put.Header.Revision || got.Header.Revision < put.Header.Revision+1000000000 || fmt.Sprintf("%x", got.Header.ClusterId) != record.ClusterID {
			t.Errorf("found %v at %+v, it was written at %+v", got.Kvs, got.Header, put.Header)
		}
		return nil
	})
}

// TestRestoreByHand does to an etcd of three members what docs/how-to/back-up-and-restore.md tells a
// person to do with a snapshot. The IDs that etcdutl prints are those to record:
// the guard refuses the restored data by the old record, and takes it by the new
// one. etcd serves what was saved, at a higher revision than it ever had.
func TestRestoreByHand(t *testing.T) {
	t.Parallel()
	const version = "v3.7.3"
	etcd, snapshots := framework.StartEtcdVersion(t, version, 3), t.TempDir()
	kept := put(t, etcd, "written/before", "kept")
	save(t, etcd, snapshots, "s", "")
	lost := put(t, etcd, "written/after", "lost")
	list, err := etcd.Client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var initial []string
	peers, before := map[string]string{}, map[string]uint64{}
	for _, m := range list.Members {
		peers[m.Name], before[m.Name] = m.PeerURLs[0], m.ID
		initial = append(initial, m.Name+"="+m.PeerURLs[0])
	}
	for i := range 3 {
		etcd.Kill(i)
	}

	var cluster string
	ids := map[string]string{}
	for i, dir := range etcd.DataDirs {
		name := fmt.Sprintf("m%d", i)
		if err := os.Rename(dir, dir+"-before"); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), framework.Program(t, "etcd", version, "etcdutl"), "snapshot", "restore", filepath.Join(snapshots, "s.db"), "--data-dir="+dir, "--name="+name,
			"--initial-cluster="+strings.Join(initial, ","), "--initial-advertise-peer-urls="+peers[name], "--initial-cluster-token=team/fleet/restored-1", "--bump-revision=1000000000", "--mark-compacted").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cluster = added(t, string(out), peers, ids)
	}
	if cluster == fmt.Sprintf("%x", list.Header.ClusterId) || len(ids) != 3 {
		t.Fatalf("restored is cluster %s (%x before), members %v", cluster, list.Header.ClusterId, ids)
	}
	dir := etcd.DataDirs[0]
	guard(t, dir, recorded("existing", list.Header.ClusterId, before["m0"]), "has the data of cluster "+cluster+", but cluster")
	guard(t, dir, map[string]string{"initial-cluster-state": "existing", "cluster-id": cluster, "member-id.m0": ids["m0"]}, "has the data of cluster "+cluster+", member ID "+ids["m0"])

	for i := range 3 {
		etcd.Start(i)
	}
	framework.Eventually(t, "etcd to serve what was restored", func(ctx context.Context) error {
		got, err := etcd.Client.Get(ctx, "written/before")
		if err != nil {
			return err
		}
		if len(got.Kvs) != 1 || got.Kvs[0].ModRevision != kept || got.Header.Revision < lost+1000000000-2 || fmt.Sprintf("%x", got.Header.ClusterId) != cluster {
			t.Errorf("found %v at %+v, it was written at %d", got.Kvs, got.Header, kept)
		}
		return nil
	})
	if found, err := etcd.Client.Get(t.Context(), "written/after"); err != nil || len(found.Kvs) != 0 {
		t.Errorf("what was written after the snapshot: %v, %v", found, err)
	}
}

// added reads from etcdutl's log which members it has added to which cluster.
func added(t *testing.T, log string, peers, ids map[string]string) (cluster string) {
	t.Helper()
	for line := range strings.Lines(log) {
		_, fields, found := strings.Cut(line, "added member\t")
		if !found {
			continue
		}
		var member struct {
			Cluster string   `json:"cluster-id"`
			ID      string   `json:"added-peer-id"`
			URLs    []string `json:"added-peer-peer-urls"`
		}
		if err := json.Unmarshal([]byte(fields), &member); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for name, url := range peers {
			if len(member.URLs) == 1 && member.URLs[0] == url {
				ids[name] = member.ID
			}
		}
		cluster = member.Cluster
	}
	if cluster == "" {
		t.Fatalf("etcdutl says of no member that it was added: %s", log)
	}
	return cluster
}
