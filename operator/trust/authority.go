package trust

import (
	"slices"
	"time"

	"github.com/clusterregistry/operator/operator/generation"
)

// Authority is a CA of the registry: what signs now, and what others were told to
// trust. The two differ after the CA was replaced, until nothing that is in use
// was signed by the previous one.
type Authority struct {
	// Name is that of its first generation, nothing where it is not the registry's own.
	Name string
	// Source is where Current comes from, for a person.
	Source string
	// InUse are the generations of a CA of the registry's own that are in use.
	InUse generation.InUse
	// Abandoned are the generations that are recorded instead of InUse, where Abandon left out
	// the next one; zero where nothing was left out.
	Abandoned generation.InUse
	// Current are the CA certificates that sign now, nil when there are none.
	Current []byte
	// Also are those of the other generation in use, nil when there is none, or it is not
	// issued yet, or Lost.
	Also []byte
	// NextKey is the fingerprint of the key of the next generation, which is recorded before
	// people are given its certificate; empty where none is. Lost is true where there is no
	// CA with that key any more: those who trust the one that was published do not trust
	// another of the same number, so that none takes its place.
	NextKey string
	Lost    bool
	// foreign is true where Also is from a Secret that is not known to be the registry's, and
	// unrecorded while people are to be given it and NextKey is not recorded yet.
	foreign, unrecorded bool
	// Reissued is when a certificate of the generation that signs was first seen with the one
	// that is to use it, zero where it was not. It stays when that is renewed.
	Reissued time.Time
	// Withdrawn is true while the previous generation is taken out of what is trusted. Also
	// is nil then.
	Withdrawn bool
	// Published are those that were published last, without expired ones, and Places what was
	// at each of several places where they are.
	Published []byte
	Places    [][]byte
}

// Bundle returns what may be published: the generations in use, the oldest first, so that
// the text stays when another one signs, and what was published before. One that people are
// given is not, before its key is recorded: it could not be told from another one later.
func (a Authority) Bundle() []byte {
	if a.unrecorded {
		return Union(a.Current, a.Published)
	}
	return Union(a.Trusted(), a.Published)
}

// Trusted returns the CA certificates of the generations in use, the oldest first.
func (a Authority) Trusted() []byte {
	if a.InUse.Previous() {
		return Union(a.Also, a.Current)
	}
	return Union(a.Current, a.Also)
}

// Announced reports whether all that signs now, or will, was published before, at each place.
func (a Authority) Announced() bool {
	lacks := func(published []byte) bool { return !contains(published, a.Trusted()) }
	return !lacks(a.Published) && !slices.ContainsFunc(a.Places, lacks)
}

// Replaced reports whether something is published that is not in use any more.
func (a Authority) Replaced() bool { return !contains(a.Trusted(), a.Published) }

// Retirable reports whether what is Replaced is to be published no more as soon as every server
// shows a certificate of the generation that signs. While the next generation is published
// beside that one, it says nothing about what else others were given, such as a next generation
// whose key is lost: all of it stays, and nothing waits for its end, until another one signs.
func (a Authority) Retirable() bool { return a.Replaced() && !a.InUse.Next() }

// Unissued reports whether a next generation is in use of which there is no certificate, and
// none was given to anyone.
func (a Authority) Unissued() bool { return a.InUse.Next() && a.Also == nil && !a.Lost }

// Abandon leaves a next generation out that is Unissued, as if it had never been begun: what
// was never given to anyone must not hold anything up.
func (a *Authority) Abandon() {
	if a.Unissued() {
		a.Abandoned, a.InUse = a.InUse, a.InUse.Sole()
	}
}

// Forget takes generations before the given one out of what was published: they were dropped,
// so that no one is to trust them again, whatever a status says that may have been restored
// from a backup. Every other CA stays, such as one of the same generation whose Secret was
// made again.
func (a *Authority) Forget(before int32) {
	var kept []byte
	for _, certificate := range Parse(a.Published) {
		if n := generationOf(a.Name, certificate.Subject.CommonName); n == 0 || n >= before {
			kept = append(kept, Encode(certificate)...)
		}
	}
	a.Published = kept
}

// Former returns the generations before the one that signs whose certificates are accepted
// still, the oldest first: the previous one, and any that was published and whose key got lost
// before it signed. Each of them may have signed for someone.
func (a Authority) Former() []int32 {
	var out []int32
	if a.InUse.Previous() {
		out = append(out, a.InUse.Also)
	}
	for _, certificate := range Parse(a.Published) {
		if n := generationOf(a.Name, certificate.Subject.CommonName); n > 0 && n < a.InUse.Signing && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Withdraw takes the previous generation out of what is trusted. It does nothing while the
// other generation in use is the next one.
func (a *Authority) Withdraw() {
	if !a.InUse.Next() {
		a.Also, a.Withdrawn = nil, true
	}
}
