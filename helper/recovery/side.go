package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/clusterregistry/operator/helper/command"
	"github.com/clusterregistry/operator/internal/contract"
)

// sideName is the name of the directory beside the data. It has one directory for each
// lineage, whose name that is.
const sideName = "recovery"

// What is in the directory of a lineage. What is not whole yet has partial behind its name.
const (
	// note says what all the rest belongs to, and makes the directory one of this package:
	// others are never removed.
	note = "recovery.json"
	// copied is a copy of the data, which changes while etcd runs on it.
	copied = "copy"
	// snapshotName is the name of the snapshot, which has two files.
	snapshotName = "survivor"
	// restored is the new data, and old that of before, once it was moved aside.
	restored, old = "restored", "old"
	// scratch has the certificate of the etcd that runs on the copy.
	scratch = "scratch"
	partial = ".partial"
)

// side is the directory of a lineage.
type side struct{ root, lineage string }

func (s side) own() string { return filepath.Join(s.root, s.lineage) }

func (s side) path(name string) string { return filepath.Join(s.root, s.lineage, name) }

// has reports whether there is a directory of a name. A link to one is none.
func (s side) has(name string) bool { return isDir(s.path(name)) }

// saved reports whether there may be a snapshot.
func (s side) saved() bool {
	info, err := os.Lstat(s.path(snapshotName + ".db"))
	return err == nil && info.Mode().IsRegular()
}

// complete gives a directory that is whole its name, for good.
func (s side) complete(name string) error {
	if err := command.SyncAll(s.path(name + partial)); err != nil {
		return err
	}
	return rename(s.path(name+partial), s.path(name))
}

// noted is what the note says: the recovery that all the rest belongs to, and a fingerprint of
// the data that it was made of.
type noted struct {
	contract.Recovery
	Data string `json:"data"`
}

// serves reports whether what was made is of use for a recovery. One that accepts more loss can
// continue with it; of one that accepts less, the revision may not have been compared.
func (n *noted) serves(next noted) bool {
	if n == nil || n.Revision < next.Revision {
		return false
	}
	next.Revision = n.Revision
	return *n == next
}

// noted returns what the note says, nil where there is none that this package has written for
// this lineage.
func (s side) noted() *noted {
	if info, err := os.Lstat(s.path(note)); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	content, err := os.ReadFile(s.path(note))
	if err != nil {
		return nil
	}
	found := &noted{}
	if err := json.Unmarshal(content, found); err != nil || found.Lineage != s.lineage {
		return nil
	}
	return found
}

// write writes the note, and makes the directory that it is in.
func (s side) write(n noted) error {
	content, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.own(), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(s.path(note+partial), append(content, '\n'), 0o600); err != nil {
		return err
	}
	if err := errors.Join(command.Sync(s.path(note+partial)), rename(s.path(note+partial), s.path(note))); err != nil {
		return err
	}
	return errors.Join(command.Sync(s.root), command.Sync(filepath.Dir(s.root)))
}

// discard removes a directory of this package, the note last: without it, the rest would stay
// forever.
func (s side) discard() error {
	entries, err := os.ReadDir(s.own())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == note {
			continue
		}
		if err := os.RemoveAll(s.path(entry.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(s.own())
}

// all returns the directories of this package. There may be none.
func all(root string) ([]side, error) {
	if !isDir(root) {
		return nil, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var found []side
	for _, entry := range entries {
		if s := (side{root, entry.Name()}); entry.IsDir() && s.noted() != nil {
			found = append(found, s)
		}
	}
	return found, nil
}

// begin prepares the directory: what is there of another recovery is discarded, which the
// member's data, that this one begins with, came after.
func (r Recovery) begin(context.Context) error {
	own := r.side()
	if _, err := os.Lstat(own.root); err == nil && !isDir(own.root) {
		return fmt.Errorf("%s is not a directory, and a recovery makes one of that name: move it out of this volume", own.root)
	}
	if _, err := os.Lstat(own.path(old)); err == nil {
		return fmt.Errorf("%s is there, the data that this recovery has moved aside before, and %s has such data again: move one of the two out of this volume", own.path(old), r.DataDir)
	}
	found, err := all(own.root)
	if err != nil {
		return err
	}
	data, err := fingerprint(r.DataDir)
	if err != nil {
		return fmt.Errorf("read the data: %w", err)
	}
	next := noted{r.Recovery, data}
	for _, s := range found {
		if s == own && s.noted().serves(next) {
			continue
		}
		r.say("removing %s, which is of another recovery, or of other data", s.own())
		if err := s.discard(); err != nil {
			return fmt.Errorf("remove what another recovery has left: %w", err)
		}
	}
	if own.noted() == nil {
		if err := own.write(next); err != nil {
			return fmt.Errorf("prepare %s: %w", own.own(), err)
		}
	}
	// What is not whole is of no use, and neither is what no step of this package makes.
	for _, name := range []string{copied, restored} {
		err = errors.Join(err, os.RemoveAll(own.path(name+partial)))
		if !own.has(name) {
			err = errors.Join(err, os.RemoveAll(own.path(name)))
		}
	}
	r.at("begun")
	return err
}

// Undo puts the data of a member back where a recovery was interrupted when it had moved it
// aside, and had not put the new data in its place. It returns a line that says so, empty when
// there was nothing to do. No one has used the new data then.
func Undo(dataDir string) (string, error) {
	has, err := command.HasFile(dataDir)
	if err != nil || has {
		return "", err
	}
	found, err := all(filepath.Join(filepath.Dir(dataDir), sideName))
	if err != nil {
		return "", err
	}
	for _, s := range found {
		if !s.has(old) || !s.has(restored) {
			continue
		}
		// There may be directories, which have no file.
		if err := os.RemoveAll(dataDir); err != nil {
			return "", err
		}
		if err := rename(s.path(old), dataDir); err != nil {
			return "", fmt.Errorf("put back the data that a recovery has moved aside: %w", err)
		}
		return fmt.Sprintf("a recovery was interrupted: its data is back in %s from %s", dataDir, s.path(old)), nil
	}
	return "", nil
}

// Clean removes what recoveries have left, the data of before included. It is for a member
// whose data is what is recorded while no recovery is. It returns the directories that it has
// removed.
func Clean(dataDir string) ([]string, error) {
	root := filepath.Join(filepath.Dir(dataDir), sideName)
	found, err := all(root)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	var removed []string
	for _, s := range found {
		if err := s.discard(); err != nil {
			return removed, err
		}
		removed = append(removed, s.own())
	}
	_ = os.Remove(root) // unless there is something else in it
	return removed, nil
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// rename renames, and brings that to the disk.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(command.Sync(filepath.Dir(from)), command.Sync(filepath.Dir(to)))
}
