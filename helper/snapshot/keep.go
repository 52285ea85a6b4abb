package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// candidate is a snapshot that may be kept.
type candidate struct {
	name string
	// saved is when the file was written; zero when it is gone.
	saved  time.Time
	proven bool
}

// Keep notes that the named snapshot is verified, keeps the last verified ones, of
// which that is always one, and removes the others. It returns the names of
// those. What no Save has written is neither counted nor touched.
func Keep(dir, name string, last int) (removed []string, err error) {
	if last < 1 {
		return nil, fmt.Errorf("%d snapshots are to be kept, but the one that was just verified always is", last)
	}
	if err := prove(dir, name); err != nil {
		return nil, err
	}
	all, err := list(dir)
	if err != nil {
		return nil, err
	}
	for _, old := range obsolete(all, name, last) {
		// Without its note, a file would be taken for someone else's.
		if err := remove(dataFile(dir, old)); err != nil {
			return removed, err
		}
		if err := remove(noteFile(dir, old)); err != nil {
			return removed, err
		}
		removed = append(removed, old)
	}
	return removed, nil
}

// prove notes that a snapshot was restored.
func prove(dir, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if _, err := os.Stat(dataFile(dir, name)); err != nil {
		return fmt.Errorf("the snapshot that was verified: %w", err)
	}
	n, err := readNote(dir, name)
	if err != nil {
		return err
	}
	if n == nil {
		return fmt.Errorf("there is no note %s on the snapshot that was verified", noteFile(dir, name))
	}
	n.Proven = true
	if err := n.write(dir); err != nil {
		return fmt.Errorf("note that snapshot %s is verified: %w", name, err)
	}
	return os.RemoveAll(filepath.Join(dir, unfinished))
}

// list returns all snapshots in a directory, and notes whose snapshot is gone.
func list(dir string) ([]candidate, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []candidate
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || !entry.Type().IsRegular() || checkName(name) != nil {
			continue
		}
		n, err := readNote(dir, name)
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		c := candidate{name: name, proven: n.Proven}
		info, err := os.Stat(dataFile(dir, name))
		switch {
		case err == nil:
			c.saved = info.ModTime()
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// obsolete returns the names of all but the last verified snapshots, the oldest
// first. The named one counts as the newest, whatever clocks say.
func obsolete(all []candidate, name string, last int) []string {
	newestFirst := slices.Clone(all)
	slices.SortFunc(newestFirst, func(a, b candidate) int {
		if (a.name == name) != (b.name == name) {
			if a.name == name {
				return -1
			}
			return 1
		}
		if c := b.saved.Compare(a.saved); c != 0 {
			return c
		}
		return strings.Compare(b.name, a.name)
	})
	var out []string
	for _, c := range newestFirst {
		if c.proven && !c.saved.IsZero() && last > 0 {
			last--
			continue
		}
		out = append(out, c.name)
	}
	slices.Reverse(out)
	return out
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an old snapshot: %w", err)
	}
	return nil
}
