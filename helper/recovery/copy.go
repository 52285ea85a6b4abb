package recovery

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// copyTree copies a directory with all that is below it, which are files and directories.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		local, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, local)
		switch {
		case entry.IsDir():
			return os.Mkdir(target, 0o700)
		case entry.Type().IsRegular():
			return copyFile(path, target)
		}
		return fmt.Errorf("%s is neither a file nor a directory, which is not of etcd: move it away", path)
	})
}

func copyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // it is only read
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// fingerprint returns another text when a file below a directory was written to, added or
// removed.
func fingerprint(dir string) (string, error) {
	hash := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(hash, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}
