package integration

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestBackupGCSFaults holds "save" to a Google Cloud Storage that fails. Its client repeats what
// may be repeated, continues uploads and downloads that were cut, and compares checksums of its
// own: nothing half-written is ever offered nevertheless, and each failure is a sentence.
func TestBackupGCSFaults(t *testing.T) {
	onStores(t, []string{"gcs"}, func(t *testing.T, a archive, s *framework.Store) {
		for _, f := range append(faultsOfSave(s),
			storeFault{"downloads are cut", framework.CutAnswer(1 << 20).Where(readsSnapshot), ""},
			storeFault{"what it returns is damaged", framework.Fault(framework.DamageAnswer).Where(readsSnapshot), "gcs://"},
		) {
			t.Run(strings.ReplaceAll(f.reason, " ", "-"), func(t *testing.T) {
				alone := a
				alone.t, alone.lineage = t, strings.ReplaceAll(f.reason, " ", "-")
				alone.survives(s, []storeFault{f})
			})
			s.Front.Between(nil)
		}
	})
}

// readsSnapshotOrBucket reports whether a request reads a snapshot, or asks what is in the bucket.
func readsSnapshotOrBucket(r *http.Request) bool {
	return readsSnapshot(r) || r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/o")
}

// TestBackupGCSFetchFaults holds "fetch" to it: no file is left that is not whole, and a bucket
// that goes between the look at the manifest and that at the snapshot is no damage.
func TestBackupGCSFetchFaults(t *testing.T) {
	onStores(t, []string{"gcs"}, func(t *testing.T, a archive, s *framework.Store) {
		a.save("first", "uid")
		to := filepath.Join(t.TempDir(), "fetched.db")
		for _, f := range []storeFault{
			{"it fails", framework.Answer(http.StatusInternalServerError).Where(readsSnapshot), "the store fails"},
			{"it is denied", framework.Answer(http.StatusForbidden).Where(readsSnapshot), "the account may not do that"},
			{"its bucket is gone", framework.Answer(http.StatusNotFound).Where(readsSnapshotOrBucket), "there is no such bucket or container"},
			{"what it returns is damaged", framework.Fault(framework.DamageAnswer).Where(readsSnapshot), "gcs://"},
		} {
			t.Log(f.reason)
			s.Front.Between(f.fault)
			a.run(nil, exitOf(f.says), f.says, "verify", a.verifyFlags("first")...)
			if f.reason != "its bucket is gone" { // by which no list is there to choose from
				a.run(nil, exitOf(f.says), f.says, "fetch", "--to="+to)
			}
			if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: a file is left that is not whole: %v", f.reason, err)
			}
		}
		s.Front.Between(framework.CutAnswer(1 << 20).Times(2).Where(readsSnapshot))
		var report contract.BackupReport
		a.run(&report, 0, "", "fetch", "--to="+to)
		s.Front.Between(nil)
		if report.VerifiedTime != nil {
			t.Errorf("it was never verified, and reported is %+v", report)
		}
		a.run(&report, 0, "", "verify", a.verifyFlags("first")...)
	})
}
