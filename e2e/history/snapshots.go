package history

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/watch"
)

// snapshots returns the lists that don't show what all changes up to their version make, and
// the clusters that shared a spec.id. What the last list lacks is lost.
func snapshots(h History, l log) (problems []Problem) {
	var lists []Operation
	for _, o := range h.Operations {
		if o.Kind == List && o.Result == Done {
			lists = append(lists, o)
		}
	}
	last := h.Operations[len(h.Operations)-1]
	slices.SortStableFunc(lists, func(a, b Operation) int { return cmp.Compare(a.Listed, b.Listed) })
	now, next := map[string]Cluster{}, 0
	for _, list := range lists {
		for ; next < len(l.changes) && l.changes[next].Version <= list.Listed; next++ {
			problems = append(problems, apply(now, l.changes[next])...)
		}
		switch {
		case list.Call == last.Call:
			// Others may have stored a cluster again after the last event.
			problems = append(problems, differ(Lost, list, now, h.Rewritten)...)
		case list.Listed <= l.to:
			problems = append(problems, differ(Snapshot, list, now, false)...)
		}
		problems = append(problems, sharedIn(list)...)
	}
	for ; next < len(l.changes); next++ {
		problems = append(problems, apply(now, l.changes[next])...)
	}
	return problems
}

// apply takes a change into what there is.
func apply(now map[string]Cluster, c change) (problems []Problem) {
	if c.Type == watch.Deleted {
		delete(now, c.Key)
		return nil
	}
	if c.Type == watch.Added && c.ID != "" {
		for _, key := range slices.Sorted(maps.Keys(now)) {
			if other := now[key]; other.ID == c.ID && key != c.Key {
				problems = append(problems, problem(Identity, "from version %d on, %s and %s both have %s", c.Version, key, c.Key, c.ID))
			}
		}
	}
	now[c.Key] = c.Cluster
	return problems
}

// differ returns how a list differs from what there was in its version.
func differ(rule Rule, list Operation, want map[string]Cluster, rewritten bool) (problems []Problem) {
	got := map[string]Cluster{}
	for _, c := range list.Found {
		got[c.Key] = c
	}
	keys := slices.Collect(maps.Keys(want))
	keys = slices.AppendSeq(keys, maps.Keys(got))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		g, w := got[key], want[key]
		if rewritten && g.Version > w.Version {
			g.Version = w.Version
		}
		if g != w {
			problems = append(problems, problem(rule, "%s: %s is %s there, and by what watches were told it was %s", list, key, got[key], w))
		}
	}
	return problems
}

// sharedIn returns the clusters of a list that share a spec.id.
func sharedIn(list Operation) (problems []Problem) {
	has := map[string]string{}
	for _, c := range list.Found {
		if other, taken := has[c.ID]; taken && c.ID != "" {
			problems = append(problems, problem(Identity, "%s: %s and %s both have %s", list, other, c.Key, c.ID))
		}
		has[c.ID] = c.Key
	}
	return problems
}
