package encryption

import (
	"fmt"
	"maps"
	"slices"
)

// State is what is known of the keys of a registry, and of what is stored under them.
type State struct {
	// InUse are the keys that the servers are given, as they are recorded. Servers that
	// are given no configuration have Identity alone.
	InUse Keys
	// Desired are those that the spec asks for. Identity alone switches encryption off.
	Desired Keys
	// Unstored is true as long as no server has ever stored anything.
	Unstored bool
	// Loaded is true when every server that there is, one that is terminating, too, was
	// started with InUse.
	Loaded bool
	// Stored counts the stored values by the ID of the key that each needs. It was read when
	// Loaded was true already, and is nil where it was not.
	Stored map[string]int
	// Needed are the IDs of keys without which backups could not be read. The servers keep
	// such keys, as ones that only read, so that the copy of the keys has them.
	Needed []string
}

// Step is what follows.
type Step struct {
	// Kind says what is done.
	Kind Kind
	// Keys are the next InUse, of the kinds that change it.
	Keys Keys
	// About says which keys it is about.
	About []string
}

// Kind is a kind of step.
type Kind string

const (
	// Done means that all is as desired.
	Done Kind = "Done"
	// Adopt gives servers that have stored nothing the desired keys at once.
	Adopt Kind = "Adopt"
	// Load waits until all servers have the keys in use.
	Load Kind = "Load"
	// Add has servers read with further keys. None of them writes yet.
	Add Kind = "Add"
	// Activate has servers write with another key, with which all of them read.
	Activate Kind = "Activate"
	// Count finds out under which keys values are stored.
	Count Kind = "Count"
	// Rewrite has all values stored again that are not under the key that writes.
	Rewrite Kind = "Rewrite"
	// Remove takes keys from the servers that nothing is stored under.
	Remove Kind = "Remove"
)

// Conflict is the error of a key that was changed under its name: what is stored under the
// one can't be told from what is stored under the other.
type Conflict struct{ ID string }

// Error says what to do.
func (c *Conflict) Error() string {
	return fmt.Sprintf("key %s is not the one that servers have under this name: give another key a name of its own, and put the former one back until nothing is stored under it and no backup needs it", c.ID)
}

// Check returns a *Conflict where a desired key has the name, but not the content, of one in
// use.
func (s State) Check() error {
	for _, key := range s.Desired {
		if used, is := s.InUse.Find(key.ID()); is && used != key {
			return &Conflict{ID: key.ID()}
		}
	}
	return nil
}

// Next returns the step that follows. At any time, what is desired may be something else than
// before; each step is safe by itself: a key writes only when all servers read with it, and is
// taken away only when all of them write with another one and nothing is stored under it.
func (s State) Next() Step {
	switch {
	case len(s.Desired) == 0 || s.Check() != nil:
		return Step{Kind: Done} // nothing is known to be desired
	case s.Unstored && !s.InUse.Equal(s.Desired):
		return Step{Kind: Adopt, Keys: slices.Clone(s.Desired), About: s.Desired.IDs()}
	case !s.Loaded:
		return Step{Kind: Load, About: s.InUse.IDs()}
	}
	writer, desired := s.InUse[0], s.Desired[0]
	missing, former := without(s.Desired, s.InUse), s.Former()
	switch {
	case len(missing) > 0:
		return Step{Kind: Add, Keys: slices.Concat(s.InUse, missing), About: missing.IDs()}
	case writer != desired:
		return Step{Kind: Activate, Keys: slices.Concat(Keys{desired}, without(s.InUse, Keys{desired})), About: []string{desired.ID()}}
	case s.Stored == nil:
		return Step{Kind: Count}
	}
	if others := s.others(); len(others) > 0 {
		return Step{Kind: Rewrite, About: others}
	}
	if len(former) > 0 {
		return Step{Kind: Remove, Keys: without(s.InUse, former), About: former.IDs()}
	}
	return Step{Kind: Done}
}

// Former are the keys in use that neither the spec names nor a backup needs, and that are taken
// away once nothing is stored under them.
func (s State) Former() Keys {
	return slices.DeleteFunc(without(s.InUse, s.Desired), func(key Key) bool { return slices.Contains(s.Needed, key.ID()) })
}

// ForBackups are the IDs of the keys in use that the spec no longer names and backups need.
func (s State) ForBackups() []string {
	if len(s.Desired) == 0 {
		return nil // it is not known what the spec names
	}
	return without(without(s.InUse, s.Desired), s.Former()).IDs()
}

// others are the IDs, in order, of what is stored and not under the key that writes.
func (s State) others() []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(s.Stored)) {
		if s.Stored[id] > 0 && id != s.InUse[0].ID() {
			out = append(out, id)
		}
	}
	return out
}

// Kept are the IDs of the keys that the servers have and neither the spec names nor a backup
// needs: they keep them until nothing is stored under them. To store without a key is none.
func (s State) Kept() []string {
	if len(s.Desired) == 0 {
		return nil // it is not known what the spec names
	}
	return without(s.Former(), Keys{Identity}).IDs()
}

// without returns keys but for others.
func without(keys, others Keys) Keys {
	return slices.DeleteFunc(slices.Clone(keys), func(key Key) bool { return slices.Contains(others, key) })
}
