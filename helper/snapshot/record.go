package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/clusterregistry/operator/internal/contract"
)

// note is the file beside a snapshot, which makes it one of ours.
type note struct {
	contract.Snapshot
	// Proven is true when the snapshot was restored once.
	Proven bool `json:"proven,omitempty"`
}

// unfinished is the directory of what is being written. Nothing below it has a
// use after its writer has ended, and no snapshot can have its name.
const unfinished = ".unfinished"

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

func checkName(name string) error {
	if !validName.MatchString(name) || len(name) > 200 {
		return fmt.Errorf("the name %q can't be that of a snapshot: it may have up to 200 lower case letters, digits, '-' and '.', and begins and ends with a letter or digit", name)
	}
	return nil
}

func dataFile(dir, name string) string { return filepath.Join(dir, name+".db") }
func noteFile(dir, name string) string { return filepath.Join(dir, name+".json") }

// readNote returns the note on a snapshot, or nil where there is none that Save
// has written.
func readNote(dir, name string) (*note, error) {
	content, err := os.ReadFile(noteFile(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := &note{}
	if err := json.Unmarshal(content, n); err != nil || n.Name != name {
		return nil, nil //nolint:nilerr // it is a file of someone else
	}
	return n, nil
}

// write puts a note in the place of the one that is there, if any.
func (n note) write(dir string) error {
	content, err := json.Marshal(n)
	if err != nil {
		return err
	}
	temporary := noteFile(filepath.Join(dir, unfinished), n.Name)
	if err := os.MkdirAll(filepath.Dir(temporary), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(content, '\n'))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return place(temporary, noteFile(dir, n.Name))
}

// place gives a finished file its name, for good.
func place(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
