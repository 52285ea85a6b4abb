package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// registryPrefix is what the keys of a registry begin with.
const registryPrefix = "/registry/clusterregistry.k8s.io/"

// archive is a lineage in a store, and the etcd that is saved to it.
type archive struct {
	t       *testing.T
	etcd    *framework.Etcd
	version string
	store   []string
	lineage string
}

// run runs a command of clusterregistry-backup, and reads its report. Where an error is wanted, it is
// a part of the text and the exit code is as given.
func (a archive) run(report any, exit int, wantErr, command string, more ...string) {
	a.t.Helper()
	cmd, file := a.command(command, more...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		a.t.Fatalf("%v; \"make build\" makes the program", err)
	}
	if said := stderr.String(); cmd.ProcessState.ExitCode() != exit || !strings.Contains(said, wantErr) || len(said) > 2048 || strings.Contains(said, "correct-horse") {
		a.t.Fatalf("backup %s %v: %v, stderr %q; want %q", command, more, err, said, wantErr)
	}
	content, err := os.ReadFile(file)
	if exit != 0 {
		a.t.Logf("backup %s says: %s", command, stderr.String())
		if !os.IsNotExist(err) {
			a.t.Errorf("backup %s failed and reported %s (%v)", command, content, err)
		}
		return
	}
	if err == nil {
		err = json.Unmarshal(content, report)
	}
	if err != nil || strings.Count(string(content), "\n") != 1 || len(content) > 4096 {
		a.t.Fatalf("backup %s reported %q, %v", command, content, err)
	}
}

func (a archive) command(command string, more ...string) (cmd *exec.Cmd, report string) {
	a.t.Helper()
	report = filepath.Join(a.t.TempDir(), "termination-log")
	args := slices.Concat([]string{command, "--report=" + report, "--prefix=prod", "--lineage=" + a.lineage}, a.store, more)
	return exec.CommandContext(a.t.Context(), filepath.Join(framework.Root(a.t), "bin", "clusterregistry-backup"), args...), report
}

// saveFlags are those of "save" that say what to save.
func (a archive) saveFlags(name, id string) []string {
	a.t.Helper()
	out := []string{"--name=" + name, "--id=" + id, "--release=v0.2.0", "--etcd-prefix=" + registryPrefix, "--scratch=" + a.t.TempDir()}
	for i, flag := range []string{"--endpoints", "--cacert", "--cert", "--key"} {
		_, value, _ := strings.Cut(a.etcd.Flags()[i], "=")
		out = append(out, flag+"="+value)
	}
	return out
}

func (a archive) save(name, id string, more ...string) contract.BackupReport {
	a.t.Helper()
	var report contract.BackupReport
	a.run(&report, 0, "", "save", slices.Concat(a.saveFlags(name, id), more)...)
	return report
}

func (a archive) verifyFlags(name string) []string {
	a.t.Helper()
	return []string{
		"--name=" + name, "--etcd-prefix=" + registryPrefix, "--scratch=" + a.t.TempDir(),
		"--etcd=" + framework.Program(a.t, "etcd", a.version, "etcd"), "--etcdutl=" + framework.Program(a.t, "etcd", a.version, "etcdutl"),
	}
}

// names are those of the newest backups, and of those that can't be read.
func (a archive) names() []string {
	a.t.Helper()
	var list contract.BackupList
	a.run(&list, 0, "", "list")
	out := []string{}
	for _, b := range list.Newest {
		out = append(out, b.Name)
	}
	for _, name := range list.Unreadable {
		out = append(out, "!"+name)
	}
	return out
}

// TestBackup saves an etcd that is written to and compacted to an S3 store, verifies the
// backup by restoring it, and finds every write in it that was acknowledged before.
func TestBackup(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v3.6.14", "v3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s3 := framework.StartS3(t)
			etcd := framework.StartEtcdVersion(t, version, 3)
			a := archive{t, etcd, version, s3.Flags(), "0b9c4b52"}
			a.run(&struct{}{}, 0, "", "check", "--registry=default/fleet")

			for i := range 1201 {
				put(t, etcd, fmt.Sprintf("%sclusters/c%04d", registryPrefix, i), "x")
			}
			newest := put(t, etcd, registryPrefix+"roles/admin", "x")
			// The server's locks have leases, by which "etcdutl hashkv" of 3.6 panics.
			var lease *clientv3.LeaseGrantResponse
			framework.Eventually(t, "a lease to be granted", func(ctx context.Context) (err error) {
				lease, err = etcd.Client.Grant(ctx, 3600)
				return err
			})
			newest = max(newest, put(t, etcd, registryPrefix+"clusterids/one", "x", clientv3.WithLease(lease.ID)))
			compact(t, etcd, newest-500)
			w := startWriting(t, etcd)
			w.wait(t, 200)
			before, begun := w.sofar(), time.Now()
			first := a.save("first", "uid-1")
			w.stop()

			want := map[string]int64{"clusters": 1201, "roles": 1, "clusterids": 1}
			if first.Name != "first" || first.Time.Sub(begun).Abs() > time.Minute || "v"+first.EtcdVersion != version || first.Release != "v0.2.0" || !maps.Equal(first.Keys, want) || first.HighestModRevision != newest ||
				first.Hash.Members != 3 || first.Hash.CompactRevision != newest-500 || first.Unchanged || first.VerifiedTime != nil || first.Location != "s3://registry-backups/prod/0b9c4b52/first/manifest.json" {
				t.Errorf("reported is %+v", first)
			}
			if again := a.save("first", "uid-1"); again.SHA256 != first.SHA256 || again.Revision != first.Revision {
				t.Errorf("run again, it reported %+v after %+v", again, first)
			}
			a.run(nil, 1, "there is already a backup first, which another request (uid-1) took at", "save", a.saveFlags("first", "uid-2")...)

			t.Log("nothing below the prefix has changed, though etcd has")
			put(t, etcd, "compact_rev_key", "x")
			if same := a.save("second", "uid-2", "--skip-unchanged"); !same.Unchanged || same.Name != "first" {
				t.Errorf("nothing has changed, and reported is %+v", same)
			}
			framework.Eventually(t, "a cluster to be deleted", func(ctx context.Context) error {
				_, err := etcd.Client.Delete(ctx, registryPrefix+"clusters/c0007")
				return err
			})
			etcd.Kill(2)
			etcd.Leader()
			if second := a.save("second", "uid-2", "--skip-unchanged"); second.Unchanged || second.Keys["clusters"] != 1200 || second.Hash.Members != 2 {
				t.Errorf("a cluster was deleted, a member is down, and reported is %+v", second)
			}

			t.Log("verified by restoring it")
			var verified contract.BackupReport
			a.run(&verified, 0, "", "verify", a.verifyFlags("first")...)
			if verified.VerifiedTime == nil || verified.SHA256 != first.SHA256 {
				t.Errorf("verified is %+v", verified)
			}
			if got := a.names(); !slices.Equal(got, []string{"second", "first"}) {
				t.Errorf("listed are %v", got)
			}
			fetched := filepath.Join(t.TempDir(), "first.db")
			a.run(&verified, 0, "", "fetch", "--before="+first.Time.Format(time.RFC3339), "--to="+fetched)
			restore(t, version, fetched).find(t, before)
		})
	}
}

// TestBackupDamaged holds the program to offer nothing that is not whole, and to say what
// is wrong.
func TestBackupDamaged(t *testing.T) {
	t.Parallel()
	s3, etcd := framework.StartS3(t), framework.StartEtcdVersion(t, "v3.7.3", 1)
	a := archive{t, etcd, "v3.7.3", s3.Flags(), "0b9c4b52"}
	put(t, etcd, registryPrefix+"clusters/a", "x")
	var newest contract.BackupReport
	for i, name := range []string{"a", "b", "c"} {
		put(t, etcd, registryPrefix+"clusters/"+name, fmt.Sprint(i))
		newest = a.save(name, "uid")
	}
	other := a
	other.lineage = "another"
	other.save("a", "uid")

	t.Log("the manifest does not say what members had")
	change := func(name, from, to string) {
		path := filepath.Join(s3.Dir, "prod", a.lineage, name, "manifest.json")
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(content), from) {
			t.Fatalf("%s has no %q: %v", content, from, err)
		}
		// As it is, or the store would not know its size.
		if err := os.WriteFile(path, []byte(strings.Replace(string(content), from, to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change("b", `"clusters": 2`, `"clusters": 3`)
	a.run(nil, contract.BackupDamaged, "backup b can't be used: restored, it has 2 keys of clusters in place of 3", "verify", a.verifyFlags("b")...)

	right, wrong := fmt.Sprintf(`"hash": %d,`, newest.Hash.Hash), `"hash": 1,`
	change("c", right, wrong)
	a.run(nil, contract.BackupDamaged, "backup c can't be used: restored, its keys have hash ", "verify", a.verifyFlags("c")...)
	change("c", wrong, right)
	a.run(&newest, 0, "", "verify", a.verifyFlags("c")...)

	t.Log("the snapshot is damaged where it is stored")
	snapshots, err := filepath.Glob(filepath.Join(s3.Dir, "prod", a.lineage, "c", "*.db"))
	if err != nil || len(snapshots) != 1 {
		t.Fatalf("%v, %v", snapshots, err)
	}
	content, err := os.ReadFile(snapshots[0])
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(snapshots[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	a.run(nil, contract.BackupDamaged, "backup c can't be used: s3://registry-backups/prod/0b9c4b52/c/", "verify", a.verifyFlags("c")...)
	a.run(nil, 1, "backup c is damaged (verified at", "fetch", "--name=c", "--to="+filepath.Join(t.TempDir(), "x"))
	var fetched contract.BackupReport
	a.run(&fetched, 0, "", "fetch", "--to="+filepath.Join(t.TempDir(), "x"))
	if fetched.Name != "a" {
		t.Errorf("two are damaged, and fetched is %s", fetched.Name)
	}

	t.Log("retention")
	var removed contract.BackupsRemoved
	a.run(&removed, 0, "", "prune", "--keep-last=1")
	if !slices.Equal(removed.Names, []string{"b", "c"}) || !slices.Equal(a.names(), []string{"a"}) || !slices.Equal(other.names(), []string{"a"}) {
		t.Errorf("removed are %v", removed.Names)
	}
	a.run(&removed, 0, "", "delete", "--name=a")
	if got := a.names(); len(got) != 0 {
		t.Errorf("left are %v", got)
	}
}

// TestBackupRefusals holds the program to say what to do, without a credential.
func TestBackupRefusals(t *testing.T) {
	t.Parallel()
	s3, etcd := framework.StartS3(t), framework.StartEtcdVersion(t, "v3.7.3", 1)
	a := archive{t, etcd, "v3.7.3", s3.Flags(), "0b9c4b52"}
	with := func(more ...string) archive {
		changed := a
		changed.store = slices.Concat(a.store, more) // the last flag of a name counts
		return changed
	}
	wrong := t.TempDir()
	for key, value := range map[string]string{"accessKeyID": "backups", "secretAccessKey": "correct-horse"} {
		if err := os.WriteFile(filepath.Join(wrong, key), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for reason, test := range map[string]struct {
		archive archive
		says    string
	}{
		"no such bucket":    {with("--bucket=none"), "store s3://none (endpoint " + s3.Endpoint + "): write prod/0b9c4b52/lineage.json: there is no such bucket or container"},
		"wrong credentials": {with("--credentials=" + wrong), "the store does not accept the credentials"},
		"another CA":        {with("--store-cacert=" + etcd.CA.File), "is not signed by a CA that is trusted here"},
		"another region":    {with("--region=eu-west-9"), "region"},
		"a prefix outside":  {with("--prefix=../x"), "can't be the prefix of backups"},
	} {
		t.Log(reason)
		test.archive.run(nil, 1, test.says, "check", "--registry=default/fleet")
	}
	if entries, err := os.ReadDir(s3.Dir); err != nil || len(entries) > 0 {
		t.Errorf("written is %v, %v", entries, err)
	}
}

// TestBackupLarge saves an etcd of 100 MB in 64 MiB of memory, and is killed in the middle
// of it: what is there then is no backup, and the next one is whole.
func TestBackupLarge(t *testing.T) {
	t.Parallel()
	s3, etcd := framework.StartS3(t), framework.StartEtcdVersion(t, "v3.7.3", 1)
	a := archive{t, etcd, "v3.7.3", s3.Flags(), "0b9c4b52"}
	value := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	for i := range 100 {
		put(t, etcd, fmt.Sprintf("%sclusters/c%03d", registryPrefix, i), value)
	}

	cmd, _ := a.command("save", a.saveFlags("first", "uid")...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for parts := 0; parts == 0; { // until a part is uploaded
		found, err := filepath.Glob(filepath.Join(s3.Dir, ".sgwtmp", "multipart", "*", "*", "1"))
		if err != nil {
			t.Fatal(err)
		}
		parts = len(found)
		select {
		case err := <-ended:
			t.Fatalf("it ended before it was killed: %v", err)
		case <-time.After(time.Millisecond): // it needs a processor
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended //nolint:errcheck // its error is that of the kill
	if got := a.names(); len(got) != 0 {
		t.Fatalf("it was killed, and listed are %v", got)
	}

	cmd, report := a.command("save", a.saveFlags("first", "uid")...)
	framework.LimitMemory(t, cmd, 64<<20)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var saved contract.BackupReport
	if err := json.Unmarshal(content, &saved); err != nil || saved.Bytes < 100<<20 || saved.Keys["clusters"] != 100 {
		t.Errorf("saved is %s, %v", content, err)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	t.Logf("%d MiB were saved in a container of 64 MiB: %d MiB of memory, pages of the program included, and %s of CPU", saved.Bytes>>20, usage.Maxrss>>10, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	var verified contract.BackupReport
	a.run(&verified, 0, "", "verify", a.verifyFlags("first")...)
}
