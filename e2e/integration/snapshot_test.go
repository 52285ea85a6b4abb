package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestSnapshot saves while clients write, has etcd's own tool restore the
// snapshot, as the Job before an upgrade does, and starts etcd on it. Every write
// that was acknowledged before is there, and etcd has the revision that was
// reported.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v3.6.14", "v3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			etcd := framework.StartEtcdVersion(t, version, 3)
			dir := t.TempDir()
			w := startWriting(t, etcd)
			w.wait(t, 500)
			before := w.sofar()
			report := save(t, etcd, dir, "first", "")
			w.wait(t, len(before)+100)
			second := w.sofar()
			save(t, etcd, dir, "second", "")
			w.stop()

			if report.Name != "first" || "v"+report.Version != version {
				t.Errorf("reported is %+v", report)
			}
			if info, err := os.Stat(filepath.Join(dir, "first.db")); err != nil || info.Size() != report.Bytes {
				t.Errorf("reported is %+v, found %+v, %v", report, info, err)
			}
			if again := save(t, etcd, dir, "first", ""); again != report {
				t.Errorf("when it was run again, it reported %+v after %+v", again, report)
			}
			restored := restore(t, version, filepath.Join(dir, "first.db"))
			if got := restored.find(t, before); got != report.Revision {
				t.Errorf("it has revision %d, and reported was %d", got, report.Revision)
			}
			restore(t, version, filepath.Join(dir, "second.db")).find(t, second)
		})
	}
}

// TestSnapshotEachTime saves so often that a failure by chance shows.
func TestSnapshotEachTime(t *testing.T) {
	t.Parallel()
	etcd, dir := framework.StartEtcd(t, 1), t.TempDir()
	for i := range 100 {
		save(t, etcd, dir, fmt.Sprint("s", i), "")
	}
}

// TestSnapshotRefusals holds the program to say what is wrong, and to leave
// nothing behind that could be taken for a snapshot.
func TestSnapshotRefusals(t *testing.T) {
	t.Parallel()
	etcd := framework.StartEtcd(t, 3)
	dir := t.TempDir()
	etcd.MoveLeader()
	leader, _ := etcd.Leader()
	first := save(t, etcd, dir, "a", "")

	t.Log("damaged after it was saved")
	path := filepath.Join(dir, "a.db")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := prove(t, "v3.6.14", path, filepath.Join(t.TempDir(), "etcd")); err == nil || !strings.Contains(out, "sha256") {
		t.Errorf("it is taken for proven: %v\n%s", err, out)
	}
	if again := save(t, etcd, dir, "a", ""); again.Bytes == 0 || again.Revision < first.Revision {
		t.Errorf("saved anew was %+v after %+v", again, first)
	}
	if out, err := prove(t, "v3.6.14", path, filepath.Join(t.TempDir(), "etcd")); err != nil {
		t.Errorf("saved anew, it is refused: %v\n%s", err, out)
	}

	t.Log("no space")
	save(t, etcd, dir, "b", "error: the volume at "+dir+" has 0 MiB free, and a snapshot of etcd's database needs", "unshare", "--map-root-user", "--mount", "sh", "-c", `mount -t tmpfs -o size=512k tmpfs "$0" && exec "$@"`, dir)

	t.Log("a member is down")
	etcd.Kill(leader)
	etcd.Leader()
	save(t, etcd, dir, "c", "")

	t.Log("the CA of somebody else")
	own := etcd.CA
	etcd.CA = framework.NewAuthority(t, "another")
	save(t, etcd, dir, "d", "certificate signed by unknown authority")
	etcd.CA = own

	t.Log("no quorum, and then nobody")
	etcd.Kill((leader + 1) % 3)
	save(t, etcd, dir, "d", "it answers, but does not complete a linearizable read: ")
	etcd.Kill((leader + 2) % 3)
	save(t, etcd, dir, "d", "connection refused")

	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range found {
		found[i] = filepath.Base(path)
	}
	if want := []string{"a.db", "a.json", "c.db", "c.json"}; !slices.Equal(found, want) {
		t.Errorf("left are %v, want %v", found, want)
	}
}

// snapshotReport is what the program reports of a snapshot.
type snapshotReport struct {
	Name            string
	Revision, Bytes int64
	Version         string
}

// save runs the program, after a command that prepares it if there is one, and
// returns its report; where an error is wanted, its text.
func save(t *testing.T, etcd *framework.Etcd, dir, name, wantErr string, before ...string) snapshotReport {
	t.Helper()
	flags := etcd.Flags() // --etcd-servers, -cafile, -certfile, -keyfile
	file := filepath.Join(t.TempDir(), "termination-log")
	args := slices.Concat(before, []string{filepath.Join(framework.Root(t), "bin", "clusterregistry-helper"), "snapshot", "save", "--dir=" + dir, "--name=" + name, "--report=" + file})
	for i, flag := range []string{"--endpoints", "--cacert", "--cert", "--key"} {
		_, value, _ := strings.Cut(flags[i], "=")
		args = append(args, flag+"="+value)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("%v; \"make build\" makes the program", err)
	}
	var report snapshotReport
	if wantErr != "" {
		said := stderr.String()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(said, wantErr) || len(said) > 2048 {
			t.Errorf("save %s: %v, stderr %q; want %q", name, err, said, wantErr)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("save %s: it failed and reported: %v", name, err)
		}
		t.Logf("it says: %s", said)
		return report
	}
	if err != nil {
		t.Fatalf("save %s: %v: %s", name, err, stderr.String())
	}
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &report)
	}
	if err != nil || strings.Count(string(content), "\n") != 1 {
		t.Fatalf("save %s: the report is %q, %v", name, content, err)
	}
	return report
}

// prove does what the Job's container of that name does.
func prove(t *testing.T, version, snapshot, dataDir string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), framework.Program(t, "etcd", version, "etcdutl"), "snapshot", "restore", snapshot, "--data-dir="+dataDir).CombinedOutput()
	return string(out), err
}

type restoredEtcd struct{ *framework.Etcd }

// restore starts an etcd on a snapshot.
func restore(t *testing.T, version, snapshot string) restoredEtcd {
	t.Helper()
	etcd := framework.StartEtcdVersion(t, version, 1)
	etcd.Kill(0)
	if err := os.RemoveAll(etcd.DataDirs[0]); err != nil {
		t.Fatal(err)
	}
	if out, err := prove(t, version, snapshot, etcd.DataDirs[0]); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	etcd.Start(0)
	etcd.WaitServing(0)
	return restoredEtcd{etcd}
}

// find expects keys with their values, and returns etcd's revision.
func (e restoredEtcd) find(t *testing.T, want map[string]string) int64 {
	t.Helper()
	all, err := e.Client.Get(t.Context(), "written/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, kv := range all.Kvs {
		got[string(kv.Key)] = string(kv.Value)
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %q, and %q was acknowledged", key, got[key], value)
		}
	}
	return all.Header.Revision
}

// writing is clients that write keys, each of them once.
type writing struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex
	acked  map[string]string
}

func startWriting(t *testing.T, etcd *framework.Etcd) *writing {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &writing{cancel: cancel, acked: map[string]string{}}
	t.Cleanup(w.stop)
	for client := range 4 {
		w.done.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key, value := fmt.Sprintf("written/%d/%d", client, i), fmt.Sprintf("%d", i)
				if _, err := etcd.Client.Put(ctx, key, value); err == nil {
					w.mu.Lock()
					w.acked[key] = value
					w.mu.Unlock()
				}
			}
		})
	}
	return w
}

// stop ends the writing.
func (w *writing) stop() {
	w.cancel()
	w.done.Wait()
}

// sofar returns what was acknowledged until now.
func (w *writing) sofar() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]string{}
	for key, value := range w.acked {
		out[key] = value
	}
	return out
}

func (w *writing) wait(t *testing.T, count int) {
	t.Helper()
	framework.Eventually(t, fmt.Sprintf("%d writes", count), func(context.Context) error {
		if n := len(w.sofar()); n < count {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}
