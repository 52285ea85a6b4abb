package history

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// moment is a version that someone knew of from a time on.
type moment struct {
	at      time.Duration
	version uint64
	what    string
}

// backward returns the writes and lists that are older than what was known before they were
// begun, whichever clusters the two are about.
func backward(h History, l log) (problems []Problem) {
	var known []moment
	deleted := map[string]uint64{}
	for _, c := range l.changes {
		known = append(known, moment{c.Told, c.Version, "a watch reported " + c.Key})
		if c.Type == watch.Deleted {
			deleted[c.UID] = c.Version
		}
	}
	versionOf := func(o Operation) uint64 {
		if o.Kind == Delete && o.Result == Done {
			return deleted[o.found().UID]
		}
		return o.version()
	}
	var asked []Operation
	for _, o := range h.Operations {
		version := versionOf(o)
		if version == 0 {
			continue
		}
		known = append(known, moment{o.Return, version, o.String()})
		if o.Kind != Get {
			asked = append(asked, o)
		}
	}
	slices.SortFunc(known, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	slices.SortFunc(asked, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	var highest moment
	next := 0
	for _, o := range asked {
		for ; next < len(known) && known[next].at < o.Call; next++ {
			if known[next].version > highest.version {
				highest = known[next]
			}
		}
		version := versionOf(o)
		if version < highest.version || version == highest.version && o.Kind != List {
			problems = append(problems, problem(Backward, "%s, in version %d; but version %d was known before it was sent, at %s: %s",
				o, version, highest.version, highest.at.Round(time.Millisecond), highest.what))
		}
	}
	return problems
}
