package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestRestoreByHand does to an etcd of three members what docs/how-to/back-up-and-restore.md tells a
// person to do with a snapshot. The IDs that etcdutl prints are those to record:
// the guard refuses the restored data by the old record, and takes it by the new
// one. etcd serves what was saved, at a higher revision than it ever had.
func TestRestoreByHand(t *testing.T) {
	t.Parallel()
	const version = "v3.7.3"
	etcd, snapshots := framework.StartEtcdVersion(t, version, 3), t.TempDir()
	put, err := etcd.Client.Put(t.Context(), "written/before", "kept")
	if err != nil {
		t.Fatal(err)
	}
	save(t, etcd, snapshots, "s", "")
	after, err := etcd.Client.Put(t.Context(), "written/after", "lost")
	if err != nil {
		t.Fatal(err)
	}
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
		if len(got.Kvs) != 1 || got.Kvs[0].ModRevision != put.Header.Revision || got.Header.Revision < after.Header.Revision+1000000000-2 || fmt.Sprintf("%x", got.Header.ClusterId) != cluster {
			t.Errorf("found %v at %+v, it was written at %+v", got.Kvs, got.Header, put.Header)
		}
		return nil
	})
	if lost, err := etcd.Client.Get(t.Context(), "written/after"); err != nil || len(lost.Kvs) != 0 {
		t.Errorf("what was written after the snapshot: %v, %v", lost, err)
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
