package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestEtcdGuard holds the guard to what etcd itself writes: it must read the IDs
// that etcd reports, accept them, refuse every other record, and refuse to start
// empty.
func TestEtcdGuard(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v3.6.14", "v3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			etcd := framework.StartEtcdVersion(t, version, 1)
			status, err := etcd.Client.Status(t.Context(), etcd.Endpoints[0])
			if err != nil {
				t.Fatal(err)
			}
			cluster, member, dir := status.Header.ClusterId, status.Header.MemberId, etcd.DataDirs[0]
			fillSegment(t, etcd)
			etcd.Kill(0)
			before := listing(t, dir)

			found := fmt.Sprintf("has the data of cluster %x, member ID %x", cluster, member)
			guard(t, dir, recorded("new", 0, 0), found)
			guard(t, dir, recorded("new", cluster, member), found)
			guard(t, dir, recorded("existing", cluster, member), found)
			guard(t, dir, recorded("existing", cluster, 0), found)
			guard(t, dir, recorded("existing", cluster+1, member), fmt.Sprintf("error: etcd member m0 (%s in the volume of claim data-m0) has the data of cluster %x, but cluster %x", dir, cluster, cluster+1))
			guard(t, dir, recorded("existing", cluster, member+1), fmt.Sprintf("has the data of member ID %x, but cluster %x, member ID %x", member, cluster, member+1))
			guard(t, dir, nil, "error: there is no initial-cluster-state")
			if after := listing(t, dir); !reflect.DeepEqual(before, after) {
				t.Errorf("the guard changed the data: %v, before %v", after, before)
			}

			if err := os.RemoveAll(filepath.Join(dir, "member", "wal")); err != nil {
				t.Fatal(err)
			}
			guard(t, dir, recorded("existing", cluster, member), "has damaged data")
			if err := os.RemoveAll(filepath.Join(dir, "member")); err != nil {
				t.Fatal(err)
			}
			guard(t, dir, recorded("existing", cluster, member), fmt.Sprintf("has no data, but cluster %x", cluster))
			guard(t, dir, recorded("new", cluster, member), fmt.Sprintf("has no data, but cluster %x", cluster))
			guard(t, dir, recorded("new", 0, 0), "it starts as a member of a new cluster")
		})
	}
}

// TestGuardBecomesEtcd has the guard start a program, as in etcd's container: the
// program is the guard's own process, and is told what was checked. Where the
// guard refuses, the program never runs.
func TestGuardBecomesEtcd(t *testing.T) {
	t.Parallel()
	program := []string{"--", "/bin/sh", "-c", "echo process $$ is $ETCD_INITIAL_CLUSTER_STATE of $ETCD_INITIAL_CLUSTER"}
	empty := t.TempDir()
	for _, test := range []struct {
		reason          string
		keys            map[string]string
		passed, joining string
		want            string
		code            int // the exit code
	}{
		{"a new cluster", recorded("new", 0, 0), "new", "", "is new of m0=https://m0.etcd:2380", 0},
		{"a member that joins, and there is no one to ask", map[string]string{"initial-cluster-state": "existing", "cluster-id": "c1", "member-id.m0": "a1", "members": "m0", "joining": "m0"}, "existing", "m0", "", 69},
		{"the cluster has formed, and the volume is late", recorded("new", 0, 0), "existing", "", "", 65},
		{"it has joined, and the volume is late", map[string]string{"initial-cluster-state": "existing", "joining": "m0"}, "existing", "", "", 65},
		{"what was passed is late", recorded("existing", 0xc1, 0xa1), "new", "", "", 65},
	} {
		cmd := guardCommand(t, empty, test.keys, program...)
		cmd.Env = []string{"ETCD_INITIAL_CLUSTER_STATE=" + test.passed}
		if test.joining != "" {
			cmd.Env = append(cmd.Env, "RECORDED_JOINING="+test.joining)
		}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		code, runs := cmd.ProcessState.ExitCode(), strings.Contains(string(out), fmt.Sprintf("process %d %s\n", cmd.Process.Pid, test.want))
		if test.want != "" && (code != test.code || !runs) {
			t.Errorf("%s: exit code %d: %s", test.reason, code, out)
		}
		if test.want == "" && (code != test.code || strings.Contains(string(out), "process") || !strings.Contains(string(out), "has no data")) {
			t.Errorf("%s: exit code %d: %s", test.reason, code, out)
		}
	}
	if out, err := guardCommand(t, empty, recorded("new", 0, 0), "--", "/nowhere/etcd").CombinedOutput(); err == nil || !strings.Contains(string(out), "error: start /nowhere/etcd: no such file") {
		t.Errorf("a program that is not there: %v: %s", err, out)
	}
}

// fillSegment writes until the log has a second segment, whose head differs: it
// goes on with the checksum of the first.
func fillSegment(t *testing.T, etcd *framework.Etcd) {
	t.Helper()
	value := strings.Repeat("v", 1<<20)
	for range 100 { // a segment has 64 MB
		put(t, etcd, "key", value)
		segments, err := filepath.Glob(filepath.Join(etcd.DataDirs[0], "member", "wal", "*.wal"))
		if err != nil {
			t.Fatal(err)
		}
		if len(segments) > 1 {
			return
		}
	}
	t.Fatal("100 MB are still in one segment of the log")
}

// recorded returns the keys of a ConfigMap about the member m0; 0 is not recorded.
func recorded(state string, cluster, member uint64) map[string]string {
	keys := map[string]string{"initial-cluster-state": state, "cluster-id": "", "member-id.m0": "", "members": "m0"}
	if cluster != 0 {
		keys["cluster-id"] = fmt.Sprintf("%x", cluster)
	}
	if member != 0 {
		keys["member-id.m0"] = fmt.Sprintf("%x", member)
	}
	return keys
}

// guard runs the guard and compares what it says; a start is on stdout, a
// refusal on stderr and an exit code of the contract.
func guard(t *testing.T, dir string, keys map[string]string, want string) {
	t.Helper()
	cmd := guardCommand(t, dir, keys)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("%v; \"make build\" makes the program", err)
	}
	said, code := stdout.String(), cmd.ProcessState.ExitCode()
	if (code == contract.GuardRefused || code == contract.GuardWaits || code == contract.GuardEmpty || code == contract.GuardForeign) && said == "" {
		said = stderr.String()
	}
	starts := !strings.HasPrefix(said, "error: ")
	if (code == 0) != starts || !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
		t.Errorf("recorded %v: exit code %d, stdout %q, stderr %q; want %q", keys, code, stdout.String(), stderr.String(), want)
	}
}

// guardCommand returns the guard of the member m0, with a record.
func guardCommand(t *testing.T, dir string, keys map[string]string, program ...string) *exec.Cmd {
	t.Helper()
	identity := t.TempDir()
	for key, value := range keys {
		if err := os.WriteFile(filepath.Join(identity, key), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	helper := filepath.Join(framework.Root(t), "bin", "clusterregistry-helper")
	return exec.CommandContext(t.Context(), helper, append([]string{"etcd-guard", "--data-dir=" + dir, "--identity-dir=" + identity, "--member=m0",
		"--peer-url=https://{member}.etcd:2380", "--client-url=https://{member}.etcd:2379", "--cacert=ca.crt", "--cert=tls.crt", "--key=tls.key"}, program...)...)
}

// file is what a write to a file changes.
type file struct {
	size     int64
	modified time.Time
}

// listing returns all files and folders below a folder.
func listing(t *testing.T, dir string) map[string]file {
	t.Helper()
	files := map[string]file{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			files[path] = file{info.Size(), info.ModTime()}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
