package layout

import (
	"slices"
	"time"
)

// Object is an object in a store.
type Object struct {
	Key string
	// ModTime is when it was written, by the store's clock.
	ModTime time.Time
}

// grace is how much older than the newest object what an interrupted backup has left must
// be before it may go: until then it may be of a backup that is being written.
const grace = 24 * time.Hour

// Contents are the objects of a lineage, by backup.
type Contents struct {
	backups map[string]*objects
	newest  time.Time
}

type objects struct {
	manifest, verification bool
	// written is when the manifest was, and verified when the verification was.
	written, verified time.Time
	snapshots         []snapshotObject
}

type snapshotObject struct {
	sha256  string
	modTime time.Time
}

// Read sorts the objects of the lineage, among which others may be.
func (l Lineage) Read(all []Object) Contents {
	c := Contents{backups: map[string]*objects{}}
	for _, o := range all {
		kind, name, sum := l.Parse(o.Key)
		if kind == Foreign {
			continue
		}
		if c.backups[name] == nil {
			c.backups[name] = &objects{}
		}
		if o.ModTime.After(c.newest) {
			c.newest = o.ModTime
		}
		switch kind {
		case ManifestObject:
			c.backups[name].manifest, c.backups[name].written = true, o.ModTime
		case VerificationObject:
			c.backups[name].verification, c.backups[name].verified = true, o.ModTime
		case SnapshotObject:
			c.backups[name].snapshots = append(c.backups[name].snapshots, snapshotObject{sum, o.ModTime})
		}
	}
	return c
}

// Names returns the names of the backups, which are those that have a manifest, in order.
func (c Contents) Names() []string {
	var out []string
	for name, have := range c.backups {
		if have.manifest {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Written returns when the manifest of a backup was written, by the store's clock; zero when it
// has none.
func (c Contents) Written(name string) time.Time {
	if c.backups[name] == nil {
		return time.Time{}
	}
	return c.backups[name].written
}

// HasVerification reports whether a backup was verified once.
func (c Contents) HasVerification(name string) bool {
	return c.backups[name] != nil && c.backups[name].verification
}

// HasSnapshot reports whether the snapshot that a manifest names is there.
func (c Contents) HasSnapshot(m Manifest) bool {
	return c.backups[m.Name] != nil && slices.ContainsFunc(c.backups[m.Name].snapshots, func(s snapshotObject) bool { return s.sha256 == m.SHA256 })
}

// Removal returns the keys of all objects of a backup in the order in which to delete
// them: the manifest is the first, so that what is left of an interrupted removal is no
// backup any more.
func (c Contents) Removal(l Lineage, name string) []string {
	have := c.backups[name]
	if have == nil {
		return nil
	}
	var out []string
	if have.manifest {
		out = append(out, l.Manifest(name))
	}
	if have.verification {
		out = append(out, l.Verification(name))
	}
	for _, s := range have.snapshots {
		out = append(out, l.Snapshot(name, s.sha256))
	}
	return out
}

// Left returns the keys, in order, of what interrupted backups and removals have left. All of a
// backup stays whose manifest can't be read, and is not among all.
func (c Contents) Left(l Lineage, all []Backup) []string {
	readable := map[string]string{}
	for _, b := range all {
		readable[b.Name] = b.SHA256
	}
	var out []string
	for name, have := range c.backups {
		used, known := readable[name]
		if have.manifest && !known {
			continue
		}
		if have.verification && !have.manifest && c.newest.Sub(have.verified) > grace {
			out = append(out, l.Verification(name))
		}
		for _, s := range have.snapshots {
			if s.sha256 != used && c.newest.Sub(s.modTime) > grace {
				out = append(out, l.Snapshot(name, s.sha256))
			}
		}
	}
	slices.Sort(out)
	return out
}
