package command

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// HasFile reports whether there is a file below a directory. Directories alone are nothing,
// and there may be none. The error is that of the file system.
func HasFile(dir string) (bool, error) {
	found := false
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == dir:
			return nil
		case err != nil:
			return err
		case !entry.IsDir():
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found, err
}

// SyncAll brings all that is below a directory to the disk, and the directory itself.
func SyncAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return Sync(path)
	})
}

// Sync brings a file or a directory to the disk. There are file systems that do not know
// that of a directory.
func Sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	if err = file.Sync(); errors.Is(err, unix.EINVAL) {
		err = nil
	}
	return errors.Join(err, file.Close())
}
