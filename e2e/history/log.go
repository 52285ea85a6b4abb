package history

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/watch"
)

// change is what watches reported of one version.
type change struct {
	Event
	// before is the cluster as the change before left it.
	before Cluster
	// by is the write that made it. A change without one is a cluster that was stored again
	// as it is, or one that no client asked for.
	by *Operation
}

// rewrite reports whether the change left the cluster as it was.
func (c change) rewrite() bool {
	return c.Type == watch.Modified && c.before.Trail == c.Trail && c.before.UID == c.UID
}

// answeredLate reports whether the change is a creation that was answered with what other
// writes have made of the cluster since, as servers answer one whose own answer etcd has lost.
func (c change) answeredLate() bool {
	return c.by != nil && c.by.Kind == Create && c.by.Result == Done && c.by.found().UID == c.UID && c.by.found().Version > c.Version
}

// log is what all watches together were told, in the order of versions.
type log struct {
	changes []change
	// to is the version up to which watches were told.
	to uint64
}

// merge makes one log of what watches were told, and returns where they were not told the
// same.
func merge(watches []Watch) (log, []Problem) {
	var problems []Problem
	byVersion := map[uint64]Event{}
	out := log{}
	for _, w := range watches {
		problems = append(problems, w.inOrder()...)
		out.to = max(out.to, w.To)
		for _, e := range w.Events {
			known, is := byVersion[e.Version]
			if is && (known.Cluster != e.Cluster || known.Type != e.Type) {
				problems = append(problems, problem(Watched, "in version %d, %s was told %s of %s, %s, and another watch %s of %s, %s", e.Version, w.Name, e.Type, e.Key, e.Cluster, known.Type, known.Key, known.Cluster))
			}
			if is {
				e.Told = min(e.Told, known.Told)
			}
			byVersion[e.Version] = e
		}
	}
	now := map[string]Cluster{}
	for _, version := range slices.Sorted(maps.Keys(byVersion)) {
		e := byVersion[version]
		before := now[e.Key]
		if why := e.follows(before); why != "" {
			problems = append(problems, problem(Watched, "in version %d, watches were told %s of %s, and %s", version, e.Type, e.Key, why))
		}
		out.changes = append(out.changes, change{Event: e, before: before})
		now[e.Key] = e.Cluster
		if e.Type == watch.Deleted {
			delete(now, e.Key)
		}
	}
	for _, w := range watches {
		problems = append(problems, out.gaps(w)...)
	}
	return out, problems
}

// inOrder returns where a watch was told an older version after a newer one, or one twice.
func (w Watch) inOrder() (problems []Problem) {
	last := w.From
	for _, e := range w.Events {
		switch {
		case e.Version == last:
			problems = append(problems, problem(Watched, "%s was told version %d twice: %s of %s", w.Name, e.Version, e.Type, e.Key))
		case e.Version < last:
			problems = append(problems, problem(Watched, "%s was told version %d after %d: %s of %s", w.Name, e.Version, last, e.Type, e.Key))
		}
		last = max(last, e.Version)
	}
	return problems
}

// follows says why an event can't come next for a cluster, nothing when it can.
func (e Event) follows(before Cluster) string {
	switch {
	case e.Type == watch.Added && before != Cluster{}:
		return "it existed: " + before.String()
	case e.Type != watch.Added && before == Cluster{}:
		return "it did not exist"
	case e.Type != watch.Added && before.UID != e.UID:
		return "it was another one before: " + before.String()
	}
	return ""
}

// gaps returns what a watch was not told, and others were.
func (l log) gaps(w Watch) (problems []Problem) {
	told := map[uint64]bool{}
	for _, e := range w.Events {
		told[e.Version] = true
	}
	for _, c := range l.changes {
		if c.Version > w.From && c.Version <= w.To && !told[c.Version] {
			problems = append(problems, problem(Watched, "%s did not report version %d, %s of %s, though it reported later ones", w.Name, c.Version, c.Type, c.Key))
		}
	}
	return problems
}

// own finds the write that made each change, and returns the changes that no client asked for
// and the acknowledged writes that made none.
func (l log) own(h History) (problems []Problem) {
	writes, deletions := map[string]*Operation{}, map[string][]*Operation{}
	for i := range h.Operations {
		switch o := &h.Operations[i]; {
		case o.Kind == Delete:
			deletions[o.Key] = append(deletions[o.Key], o)
		case o.writes():
			writes[o.Write] = o
		}
	}
	made := map[*Operation]*change{}
	for i := range l.changes {
		c := &l.changes[i]
		if c.Type == watch.Deleted {
			c.by = deleter(c, deletions[c.Key], made)
		} else if !c.rewrite() {
			c.by = writes[c.last()]
		}
		if text := c.unasked(h, made); text != "" {
			problems = append(problems, problem(Watched, "version %d, %s of %s, %s: %s", c.Version, c.Type, c.Key, c.Cluster, text))
			c.by = nil
		}
		if c.by != nil {
			made[c.by] = c
		}
	}
	for i := range h.Operations {
		o := &h.Operations[i]
		if !o.writes() || o.Result != Done {
			continue
		}
		switch c := made[o]; {
		case c == nil:
			problems = append(problems, problem(Lost, "no watch reported %s", o))
		case o.Kind != Delete && c.Cluster != o.found() && !c.answeredLate():
			problems = append(problems, problem(Lost, "%s; watches were told %s instead", o, c.Cluster))
		}
	}
	return problems
}

// deleter returns which of the deletions of a cluster made a change: the one that was
// answered with the UID, or else one without an answer.
func deleter(c *change, deletions []*Operation, made map[*Operation]*change) *Operation {
	var open *Operation
	for _, o := range deletions {
		switch {
		case made[o] != nil || o.Call > c.Told:
		case o.Result == Done && o.found().UID == c.UID:
			return o
		case o.Result == Unanswered && open == nil:
			open = o
		}
	}
	return open
}

// unasked says why no client asked for a change, nothing when someone did.
func (c *change) unasked(h History, made map[*Operation]*change) string {
	kinds := map[watch.EventType][]Kind{watch.Added: {Create}, watch.Modified: {Replace, Append}, watch.Deleted: {Delete}}
	switch {
	case c.rewrite() && h.Rewritten:
		return ""
	case c.Type == watch.Deleted && c.by == nil && undone(c.before, made):
		return ""
	case c.by == nil:
		return "no client asked for it"
	case made[c.by] != nil:
		return "it was applied before, in version " + made[c.by].String() + ", by " + c.by.String()
	case c.by.Key != c.Key || !slices.Contains(kinds[c.Type], c.by.Kind):
		return "it was asked for otherwise: " + c.by.String()
	case c.by.Call > c.Told:
		return "it was told before it was asked for: " + c.by.String()
	case !slices.Contains([]Result{Done, Unanswered, Taken}, c.by.Result):
		return "it was refused: " + c.by.String()
	}
	return ""
}

// undone reports whether a cluster was created although its spec.id was taken: the server
// takes such a cluster back.
func undone(before Cluster, made map[*Operation]*change) bool {
	for o, c := range made {
		if o.Result == Taken && c.UID == before.UID {
			return true
		}
	}
	return false
}
