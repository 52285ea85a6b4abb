package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/clusterregistry/operator/internal/contract"
)

// logs is what etcd allocates of its write-ahead log beforehand: a segment, and the next one.
const logs = 2 * 64 << 20

// needs is what a recovery needs in bytes.
type needs struct {
	// data is the size of the member's data, and database that of the database in it.
	data, database int64
}

// measure reads the sizes.
func measure(dataDir string) (needs, error) {
	var n needs
	err := filepath.WalkDir(dataDir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			n.data += info.Size()
		}
		return err
	})
	if err != nil {
		return needs{}, err
	}
	info, err := os.Stat(filepath.Join(dataDir, "member", "snap", "db"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return needs{}, err
	}
	if err == nil {
		n.database = info.Size()
	}
	return n, nil
}

// peak returns how many bytes the steps to come take at most at a time, those that have a
// part done excluded.
func (n needs) peak(s side) int64 {
	second := n.database + logs // what is restored
	switch {
	case s.has(restored):
		return 0
	case s.saved():
		return second
	case s.has(copied):
		return max(n.database+logs, n.database+second-n.data)
	}
	return max(n.data+n.database+logs, n.database+second)
}

// checkSpace fails where the volume has no room for what is to be made. It is a tenth more
// than what it needs now.
func (r Recovery) checkSpace(context.Context) error {
	n, err := measure(r.DataDir)
	if err != nil {
		return fmt.Errorf("find out how much there is to copy: %w", err)
	}
	measureFree := r.free
	if measureFree == nil {
		measureFree = freeBytes
	}
	free, err := measureFree(r.side().root)
	if err != nil {
		return fmt.Errorf("find out how much space is free: %w", err)
	}
	peak := n.peak(r.side())
	need := peak + peak/10
	if free < need {
		return fmt.Errorf("a copy of its data (%d bytes), a snapshot and the data that is restored need %d bytes, and %d bytes are free. %s", n.data, need, free, r.room())
	}
	r.say("%d bytes are free, and %d needed", free, need)
	return nil
}

// freeBytes returns how many bytes are free on the file system of a directory.
func freeBytes(dir string) (int64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(dir, &stat)
	return int64(stat.Bavail) * stat.Bsize, err //nolint:gosec // no file system has that many
}

// room says what to do where there is too little.
func (r Recovery) room() string {
	return fmt.Sprintf("Grow spec.etcd.storage.size where the storage class of claim %s allows that; or recover from a backup", contract.EtcdMemberClaim(r.Member))
}
