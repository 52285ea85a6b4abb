package trust

import "github.com/clusterregistry/operator/operator/generation"

// Authority is a CA of the registry: what signs now, and what others were told to
// trust. The two differ after the CA was replaced, until nothing that is in use
// was signed by the previous one.
type Authority struct {
	// Source is where Current comes from, for a person.
	Source string
	// InUse are the generations of a CA of the registry's own that are in use.
	InUse generation.InUse
	// Current are the CA certificates that sign now, nil when there are none.
	Current []byte
	// Also are those of the other generation in use, nil when there is none, or it is not
	// issued yet.
	Also []byte
	// Withdrawn is true while the previous generation is taken out of what is trusted. Also
	// is nil then.
	Withdrawn bool
	// Published are those that were published last, without expired ones.
	Published []byte
}

// Bundle returns what may be published: the generations in use, the oldest first, so that
// the text stays when another one signs, and what was published before.
func (a Authority) Bundle() []byte { return Union(a.Trusted(), a.Published) }

// Trusted returns the CA certificates of the generations in use, the oldest first.
func (a Authority) Trusted() []byte {
	if a.InUse.Previous() {
		return Union(a.Also, a.Current)
	}
	return Union(a.Current, a.Also)
}

// Announced reports whether all that signs now, or will, was published before.
func (a Authority) Announced() bool { return contains(a.Published, a.Trusted()) }

// Replaced reports whether something is published that is not in use any more.
func (a Authority) Replaced() bool { return !contains(a.Trusted(), a.Published) }

// Withdraw takes the previous generation out of what is trusted. It does nothing while the
// other generation in use is the next one.
func (a *Authority) Withdraw() {
	if !a.InUse.Next() {
		a.Also, a.Withdrawn = nil, true
	}
}
