package trust

// Authority is a CA of the registry: what signs now, and what others were told to
// trust. The two differ after the CA was replaced, until nothing that is in use
// was signed by the previous one.
type Authority struct {
	// Source is where Current comes from, for a person.
	Source string
	// Current are the CA certificates that sign now, nil when there are none.
	Current []byte
	// Published are those that were published last, without expired ones.
	Published []byte
}

// Bundle returns what may be published: what signs now, first, and what was
// published before.
func (a Authority) Bundle() []byte { return Union(a.Current, a.Published) }

// Announced reports whether all that signs now was published before.
func (a Authority) Announced() bool { return contains(a.Published, a.Current) }

// Replaced reports whether something is published that does not sign any more.
func (a Authority) Replaced() bool { return !contains(a.Current, a.Published) }
