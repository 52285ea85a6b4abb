package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// onStore returns a lineage in a store of a kind, and an etcd with some MiB to save.
func onStore(t *testing.T, kind string) (archive, *framework.Store) {
	t.Helper()
	s, etcd := framework.StartStore(t, kind), framework.StartEtcdVersion(t, "v3.7.3", 1)
	value := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	for i := range 12 {
		put(t, etcd, fmt.Sprintf("%sclusters/c%02d", registryPrefix, i), value) // more than is uploaded at a time
	}
	return archive{t, etcd, "v3.7.3", s.Flags(), "0b9c4b52"}, s
}

// onStores runs a test on a store of each of these kinds.
func onStores(t *testing.T, kinds []string, test func(t *testing.T, a archive, s *framework.Store)) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a, s := onStore(t, kind)
			test(t, a, s)
		})
	}
}

// TestBackupStores takes backups to a store of each kind, and does with them all that can be
// done.
func TestBackupStores(t *testing.T) {
	onStores(t, framework.StoreKinds, func(t *testing.T, a archive, s *framework.Store) {
		for range 2 {
			a.run(&struct{}{}, 0, "", "check", "--registry=default/fleet")
		}
		if got := a.names(); len(got) != 0 {
			t.Errorf("nothing was saved, and listed are %v", got)
		}
		first := a.save("first", "uid-1")
		if want := s.Kind + "://registry-backups/prod/0b9c4b52/first/manifest.json"; first.Location != want || first.Keys["clusters"] != 12 || first.Bytes < 12<<20 {
			t.Errorf("reported is %+v, want it in %s", first, want)
		}
		if again := a.save("first", "uid-1"); again.SHA256 != first.SHA256 || !again.Time.Equal(first.Time) {
			t.Errorf("run again, it reported %+v after %+v", again, first)
		}
		put(t, a.etcd, registryPrefix+"clusters/more", "x")
		second := a.save("second", "uid-2")
		a.run(nil, 1, "there is already a backup second, which another request (uid-2) took at", "save", a.saveFlags("second", "uid-3")...)
		other := a
		other.lineage = "another"
		other.save("first", "uid-4")

		var verified contract.BackupReport
		a.run(&verified, 0, "", "verify", a.verifyFlags("first")...)
		a.run(&verified, 0, "", "verify", a.verifyFlags("first")...) // which replaces what the last one has recorded
		if verified.VerifiedTime == nil || verified.SHA256 != first.SHA256 {
			t.Errorf("verified is %+v", verified)
		}
		if got := a.names(); !slices.Equal(got, []string{"second", "first"}) {
			t.Errorf("listed are %v", got)
		}
		to := filepath.Join(t.TempDir(), "fetched.db")
		var fetched contract.BackupReport
		a.run(&fetched, 0, "", "fetch", "--to="+to)
		if info, err := os.Stat(to); err != nil || fetched.SHA256 != second.SHA256 || info.Size() != second.Bytes {
			t.Errorf("fetched is %+v: %v, %v", fetched, info, err)
		}

		var removed contract.BackupsRemoved
		a.save("third", "uid-5")
		a.run(&removed, 0, "", "prune", "--keep-last=1")
		// The first one is the newest that is verified.
		if got := a.names(); !slices.Equal(removed.Names, []string{"second"}) || !slices.Equal(got, []string{"third", "first"}) {
			t.Errorf("removed are %v, and left %v", removed.Names, got)
		}
		for range 2 {
			a.run(&removed, 0, "", "delete", "--name=first")
		}
		if got := a.names(); !slices.Equal(got, []string{"third"}) || !slices.Equal(other.names(), []string{"first"}) {
			t.Errorf("left are %v", got)
		}
	})
}

// TestBackupWriters has two write a backup of one name at the same time: one of them wins,
// and the other one says so. A store that takes no notice of the condition is not used.
func TestBackupWriters(t *testing.T) {
	onStores(t, framework.StoreKinds, func(t *testing.T, a archive, s *framework.Store) {
		const writers = 3
		// None of them writes a manifest before all have seen that there is none. Then they
		// write one after the other: versitygw v1.7.0 looks at the condition and writes in two
		// steps, so two that it gets at the same moment may both be told that they have written.
		var arrived sync.WaitGroup
		var turn sync.Mutex
		arrived.Add(writers)
		s.Front.Between(framework.Fault(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			arrived.Done()
			arrived.Wait()
			turn.Lock()
			defer turn.Unlock()
			next.ServeHTTP(w, r)
		}).Times(writers).Where(writesManifest))
		type result struct{ said, id string }
		results := make(chan result, writers)
		for i := range writers {
			id := fmt.Sprintf("uid-%d", i)
			cmd, _ := a.command("save", a.saveFlags("same", id)...)
			go func() {
				out, err := cmd.CombinedOutput()
				if err != nil {
					results <- result{string(out), ""}
					return
				}
				results <- result{"", id}
			}()
		}
		var won, lost []string
		for range writers {
			if r := <-results; r.id != "" {
				won = append(won, r.id)
			} else {
				lost = append(lost, r.said)
			}
		}
		s.Front.Between(nil)
		if len(won) != 1 || len(lost) != writers-1 {
			t.Fatalf("of %d writers won %v, and these did not: %q", writers, won, lost)
		}
		for _, said := range lost {
			if !strings.Contains(said, "there is already a backup same, which another request ("+won[0]+") took at") {
				t.Errorf("%s has won, and another one says %q", won[0], said)
			}
		}
		var verified contract.BackupReport
		a.run(&verified, 0, "", "verify", a.verifyFlags("same")...)

		// It is as if the condition was not there. In S3 and Azure it is signed, so nothing
		// between can remove it, but something else can answer as if it had been written.
		writes := func(r *http.Request) bool { return r.Method == http.MethodPut }
		ignores := map[string]framework.Fault{
			"s3": framework.Answer(http.StatusOK).Where(writes), "azure": framework.Answer(http.StatusCreated).Where(writes),
			"gcs": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				query := r.URL.Query()
				query.Del("ifGenerationMatch")
				r.URL.RawQuery = query.Encode()
				next.ServeHTTP(w, r)
			},
		}[s.Kind]
		s.Front.Between(ignores)
		a.run(nil, 1, "the store does not support conditional writes", "check", "--registry=default/fleet")
	})
}

// writesManifest reports whether a request writes a manifest.
func writesManifest(r *http.Request) bool {
	return strings.HasSuffix(objectWritten(r), "/manifest.json")
}

// writesSnapshot reports whether a request writes a snapshot, or a part of one.
func writesSnapshot(r *http.Request) bool { return strings.HasSuffix(objectWritten(r), ".db") }

// nameInBody finds the name of an object in a request to Google Cloud Storage.
var nameInBody = regexp.MustCompile(`"name":"([^"]*)"`)

// objectWritten returns the name of the object that a request writes, empty when it writes none.
func objectWritten(r *http.Request) string {
	switch {
	case r.Method != http.MethodPut && r.Method != http.MethodPost:
		return ""
	case !strings.HasPrefix(r.URL.Path, "/upload/"):
		return r.URL.Path
	case r.URL.Query().Get("upload_id") != "":
		return "any.db" // only snapshots are uploaded in parts
	}
	begin := make([]byte, 2048)
	n, err := io.ReadFull(r.Body, begin)
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin[:n]), rest), rest}
	if found := nameInBody.FindSubmatch(begin[:n]); found != nil && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) {
		return string(found[1])
	}
	return ""
}

func readsSnapshot(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".db")
}

// TestBackupStoreRefusals expects each refusal to say what to do.
func TestBackupStoreRefusals(t *testing.T) {
	onStores(t, framework.StoreKinds, func(t *testing.T, a archive, s *framework.Store) {
		with := func(more ...string) archive {
			changed := a
			changed.store = slices.Concat(a.store, more) // the last flag of a name counts
			return changed
		}
		save := func(a archive, says string) {
			t.Helper()
			a.run(nil, 1, says, "save", a.saveFlags("first", "uid")...)
		}
		absent := with("--bucket=none")
		absent.run(nil, 1, "there is no such bucket or container: create it", "check", "--registry=default/fleet")
		absent.run(nil, 1, "there is no such bucket or container: create it", "list")
		save(absent, "there is no such bucket or container: create it")
		// One that has gone since: nothing of a backup is known then, and least of all that it is
		// damaged.
		for command, more := range map[string][]string{
			"verify": a.verifyFlags("first"), "show": nil, "prune": {"--keep-last=1"}, "delete": {"--name=first"},
			"fetch": {"--to=" + filepath.Join(t.TempDir(), "x")},
		} {
			absent.run(nil, 1, "there is no such bucket or container: create it", command, more...)
		}
		wrong, says := with("--credentials="+s.Wrong), "the store does not accept the credentials"
		if s.Kind == "azure" {
			says = "the account may not do that" // Azure says AuthenticationFailed, and azurite AuthorizationFailure
		}
		for command, more := range map[string][]string{"check": {"--registry=default/fleet"}, "list": nil, "delete": {"--name=first"}} {
			wrong.run(nil, 1, says, command, more...)
		}
		save(wrong, says)

		a.save("first", "uid")
		s.Front.Between(framework.Answer(http.StatusForbidden).Where(func(r *http.Request) bool { return r.Method == http.MethodDelete }))
		a.run(nil, 1, "the account may not do that: permit it to list, read, write and delete", "delete", "--name=first")
		s.Front.Between(nil)
		if got := a.names(); !slices.Equal(got, []string{"first"}) {
			t.Errorf("it may not be deleted, and listed are %v", got)
		}
	})
}

// faulty are the kinds of stores that clients take as they are. The client of Google Cloud
// Storage continues downloads that were cut, and checks what arrives itself, so its outcomes
// differ: backupgcs_test.go has them.
var faulty = []string{"s3", "azure"}

// storeFault is what is wrong with a store.
type storeFault struct {
	reason string
	fault  framework.Fault
	says   string // why no backup is taken, empty when it is taken all the same
}

// exitOf returns the code that the helper exits with where it says something of a store.
func exitOf(says string) int {
	switch says {
	case "":
		return 0
	case "the connection broke", "the store fails", "the store fails: see its own log or status page", "the store is overloaded or limits requests":
		return contract.StoreUnreachable
	}
	return 1
}

// TestBackupStoreFaults holds "save" to a store that fails: nothing half-written is ever
// offered, each failure is a sentence, and once the store is well again it is taken.
func TestBackupStoreFaults(t *testing.T) {
	onStores(t, faulty, func(t *testing.T, a archive, s *framework.Store) {
		a.survives(s, append(faultsOfSave(s),
			storeFault{"downloads are cut", framework.CutAnswer(1 << 20).Where(readsSnapshot), "the connection broke"},
			storeFault{"what it returns is damaged", framework.Fault(framework.DamageAnswer).Where(readsSnapshot), "damages data; it is removed"},
		))
	})
}

// faultsOfSave are those that have "save" end in the same way, whatever the kind of the store.
func faultsOfSave(s *framework.Store) []storeFault {
	unwell := framework.Answer(http.StatusServiceUnavailable)
	return []storeFault{
		{"it fails", framework.Answer(http.StatusInternalServerError), "the store fails: see its own log or status page"},
		{"it is forbidden", framework.Answer(http.StatusForbidden), "the account may not do that"},
		{"it is overloaded", unwell.Where(writesSnapshot), "the store is overloaded or limits requests"},
		{"it is overloaded for a moment", unwell.Times(2).Where(writesSnapshot), ""},
		{"it is late", framework.Late(time.Second), ""},
		{"uploads are cut", framework.CutRequest(1 << 20).Where(writesSnapshot), "the connection broke"},
		{"an upload is cut", framework.CutRequest(1 << 20).Times(1).Where(writesSnapshot), ""},
		{"the answer to the manifest is lost", framework.CutAnswer(0).Times(1).Where(writesManifest), ""},
		{"what it is given is damaged", framework.Fault(framework.DamageRequest).Where(writesSnapshot), s.Kind + "://"},
		{"it refuses manifests", framework.Answer(http.StatusForbidden).Where(writesManifest), "the account may not do that"},
	}
}

// survives takes a backup under each fault of the store, and another time without it.
func (a archive) survives(s *framework.Store, faults []storeFault) {
	a.t.Helper()
	for i, test := range faults {
		name := fmt.Sprintf("backup-%d", i)
		s.Front.Between(test.fault)
		begun, exit := time.Now(), exitOf(test.says)
		var taken contract.BackupReport
		a.run(&taken, exit, test.says, "save", a.saveFlags(name, "uid")...)
		a.t.Logf("%s: it ended after %s", test.reason, time.Since(begun).Round(100*time.Millisecond))
		s.Front.Between(nil)
		if got := a.names(); exit != 0 && slices.Contains(got, name) || slices.ContainsFunc(got, func(name string) bool { return strings.HasPrefix(name, "!") }) {
			a.t.Errorf("%s: it was not taken, and listed are %v", test.reason, got)
		}
		a.save(name, "uid")
		a.run(&taken, 0, "", "fetch", "--name="+name, "--to="+filepath.Join(a.t.TempDir(), "x"))
	}
}

// TestBackupFetchFaults holds what reads a backup to a store that fails: no file is left that
// is not whole, and no failure of the store is taken for damage of the backup.
func TestBackupFetchFaults(t *testing.T) {
	onStores(t, faulty, func(t *testing.T, a archive, s *framework.Store) {
		a.save("first", "uid")
		to := filepath.Join(t.TempDir(), "fetched.db")
		s.Front.Between(framework.CutAnswer(1 << 20).Where(readsSnapshot))
		a.run(nil, contract.StoreUnreachable, "the connection broke", "fetch", "--to="+to)
		if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file is left that is not whole: %v", err)
		}
		for reason, test := range map[string]struct {
			fault framework.Fault
			says  string
		}{
			"it fails":     {framework.Answer(http.StatusInternalServerError).Where(readsSnapshot), "the store fails"},
			"it is denied": {framework.Answer(http.StatusForbidden).Where(readsSnapshot), "the account may not do that"},
		} {
			t.Log(reason)
			s.Front.Between(test.fault)
			a.run(nil, exitOf(test.says), test.says, "fetch", "--to="+to)
			if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a file is left that is not whole: %v", err)
			}
			a.run(nil, exitOf(test.says), test.says, "verify", a.verifyFlags("first")...)
		}
		s.Front.Between(framework.Fault(framework.DamageAnswer).Where(readsSnapshot))
		a.run(nil, contract.BackupDamaged, "and was saved with", "fetch", "--to="+to)
		if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file is left that is damaged: %v", err)
		}
		s.Front.Between(nil)
		var report contract.BackupReport
		a.run(&report, 0, "", "fetch", "--to="+to)
		if report.VerifiedTime != nil {
			t.Errorf("it was never verified, and reported is %+v", report)
		}
		a.run(&report, 0, "", "verify", a.verifyFlags("first")...)
	})
}

// TestBackupStoreKilled kills "save" in the middle of an upload.
func TestBackupStoreKilled(t *testing.T) {
	onStores(t, framework.StoreKinds, func(t *testing.T, a archive, s *framework.Store) {
		uploading := make(chan struct{})
		once := sync.OnceFunc(func() { close(uploading) })
		s.Front.Between(framework.Fault(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
			_, _ = io.Copy(io.Discard, r.Body) // or it would not learn that the client has gone
			once()
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}).Where(writesSnapshot))
		cmd, _ := a.command("save", a.saveFlags("first", "uid")...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
		defer cancel()
		select {
		case <-uploading:
		case <-ctx.Done():
			t.Errorf("nothing was uploaded within %s", framework.Patience)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its error is that of the kill
		s.Front.Between(nil)
		if got := a.names(); len(got) != 0 {
			t.Fatalf("it was killed, and listed are %v", got)
		}
		a.save("first", "uid")
		var verified contract.BackupReport
		a.run(&verified, 0, "", "verify", a.verifyFlags("first")...)
	})
}
