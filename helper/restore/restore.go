// Package restore makes a snapshot the data of an etcd member, in the member's own pod, before
// etcd starts.
//
// It may be killed at any point and run again. The data is written to a directory beside the
// member's, brought to the disk, and renamed in the end: so the member has no data, or all of
// it. A member that has data is left alone, whatever it is; the guard says whether etcd may
// start on it. One without data is restored only as long as the record says so, by what is
// mounted and by what kubelet has read when it started the container: one of them may be late,
// which is an error, so that it is tried again and etcd does not start before that.
package restore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/clusterregistry/operator/helper/command"
	"github.com/clusterregistry/operator/internal/contract"
)

// Variable is the environment variable with what kubelet read from the record when it
// started the container: the value of contract.RecordRestore.
const Variable = "RECORDED_RESTORE"

// Restore is what is to be restored.
type Restore struct {
	// ID is that of the restore, as recorded. It becomes etcd's token, of which etcd makes the
	// IDs of the cluster and of the member.
	ID string
	// Member is the name of the member, and PeerURL where it serves others, with {member} in
	// place of its name.
	Member, PeerURL string
	// DataDir is etcd's own, and SideDir a directory on the same file system, which has the
	// snapshot in the file SnapshotFile.
	DataDir, SideDir string
	// SHA256 is the checksum of the snapshot.
	SHA256 string
	// IdentityDir is where the record is mounted.
	IdentityDir string
	// Etcdutl is the program.
	Etcdutl string
}

// SnapshotFile is the name of the snapshot in SideDir.
const SnapshotFile = "snapshot.db"

// Run restores the member unless it has data, or the record does not say that it is to be
// restored. The passed value is that of Variable. It returns a line that says what was done.
func (r Restore) Run(ctx context.Context, passed string) (string, error) {
	has, err := command.HasFile(r.DataDir)
	if err != nil {
		return "", fmt.Errorf("find out whether %s has data: %w", r.DataDir, err)
	}
	if has {
		// The snapshot takes room that etcd's quota counts on.
		return fmt.Sprintf("etcd member %s has data: nothing is restored", r.Member), os.RemoveAll(r.SideDir)
	}
	mounted, err := os.ReadFile(filepath.Join(r.IdentityDir, contract.RecordRestore))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read what is recorded about this restore: %w", err)
	}
	recorded := strings.TrimSpace(string(mounted)) == r.ID
	switch {
	case recorded != (passed == r.ID):
		return "", fmt.Errorf("etcd member %s has no data, and of what is mounted of the record and what was passed, one alone says that it is to be restored (%s): the record is late; this container is started again", r.Member, r.ID)
	case !recorded:
		return fmt.Sprintf("etcd member %s has no data, and the record does not say that it is to be restored (%s): nothing is restored", r.Member, r.ID), nil
	}
	if err := r.restore(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("etcd member %s was restored (%s)", r.Member, r.ID), nil
}

// restore makes the snapshot the member's data.
func (r Restore) restore(ctx context.Context) error {
	snapshot, made := filepath.Join(r.SideDir, SnapshotFile), filepath.Join(r.SideDir, "etcd")
	if err := check(snapshot, r.SHA256); err != nil {
		return err
	}
	data := Data{Etcdutl: r.Etcdutl, Snapshot: snapshot, Dir: made, Member: r.Member, PeerURL: r.PeerURL, Token: r.ID}
	if err := data.Make(ctx); err != nil {
		return err
	}
	// There may be directories, which have no file.
	if err := os.RemoveAll(r.DataDir); err != nil {
		return err
	}
	if err := os.Rename(made, r.DataDir); err != nil {
		return fmt.Errorf("put the restored data in its place: %w", err)
	}
	if err := command.Sync(filepath.Dir(r.DataDir)); err != nil {
		return err
	}
	return os.RemoveAll(r.SideDir)
}

// check makes sure that the snapshot is the one that was looked up.
func check(path, sum string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the snapshot that was fetched: %w", err)
	}
	defer func() { _ = file.Close() }() // it is only read
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("the snapshot at %s has SHA-256 %s, and was saved with %s: delete this Pod, and it is fetched again", path, got, sum)
	}
	return nil
}
