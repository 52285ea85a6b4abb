package command

import (
	"errors"
	"io/fs"
	"path/filepath"
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
