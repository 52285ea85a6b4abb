package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"k8s.io/apimachinery/pkg/watch"
)

// rewrite stores a cluster again as it is. No client asks for it.
const rewrite Kind = "rewrite"

// step is one operation on one cluster. A list is a step of each cluster.
type step struct {
	Operation
	// seen is the cluster in the answer, or what a watch reported of a write without an answer.
	seen Cluster
}

// model is one cluster: its state is the cluster itself. All steps have an outcome that is
// known, so there is nothing to put into porcupine's output.
var model = porcupine.Model{
	Init: func() any { return Cluster{} },
	Step: func(state, input, _ any) (bool, any) {
		next, ok := input.(step).next(state.(Cluster))
		return ok, next
	},
}

// next returns what a step makes of a cluster, and whether it can come then.
func (s step) next(now Cluster) (Cluster, bool) {
	exists := now != Cluster{}
	switch s.Result {
	case Missing:
		return now, !exists
	case Exists:
		return now, exists
	case Conflict:
		return now, now.Version != s.From
	case Taken:
		return now, true
	default:
	}
	newer := exists && s.seen.UID == now.UID && s.seen.ID == now.ID && s.seen.Version > now.Version
	switch s.Kind {
	case Create:
		return s.seen, !exists && s.seen.Trail == s.Write
	case Replace:
		return s.seen, newer && now.Version == s.From && s.seen.Trail == s.Write
	case Append:
		return s.seen, newer && s.seen.Trail == now.with(s.Write)
	case rewrite:
		return s.seen, newer && now.Version == s.From && s.seen.Trail == now.Trail
	case Delete:
		return Cluster{}, exists && s.seen.UID == now.UID
	default:
		return now, s.seen == now
	}
}

// linearizable returns the clusters whose answers don't fit one order.
func linearizable(h History, l log, patience time.Duration) (problems []Problem) {
	byKey := steps(h, l)
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		var operations []porcupine.Operation
		for _, s := range byKey[key] {
			operations = append(operations, porcupine.Operation{ClientId: s.Client, Input: s, Call: int64(s.Call), Return: int64(s.Return)})
		}
		result, info := porcupine.CheckOperationsVerbose(model, operations, patience)
		switch result {
		case porcupine.Ok:
		case porcupine.Unknown:
			problems = append(problems, problem(Incomplete, "porcupine did not decide about the %d operations on %s within %s", len(operations), key, patience))
		default:
			problems = append(problems, problem(Linearizable, "%s", explain(key, byKey[key], info.PartialLinearizations())))
		}
	}
	return problems
}

// steps returns what happened to each cluster.
func steps(h History, l log) map[string][]step {
	made, latest := map[*Operation]*change{}, map[string]Cluster{}
	out := map[string][]step{}
	for i := range l.changes {
		c := &l.changes[i]
		latest[c.Key] = c.Cluster
		switch {
		case c.by != nil:
			made[c.by] = c
		case c.rewrite():
			out[c.Key] = append(out[c.Key], step{Operation{Kind: rewrite, Key: c.Key, From: c.before.Version, Return: c.Told, Result: Done}, c.Cluster})
		case c.Type == watch.Deleted: // the server has undone a creation
			out[c.Key] = append(out[c.Key], step{Operation{Kind: Delete, Key: c.Key, Return: c.Told, Result: Done}, c.Cluster})
		default: // no client asked for it, which is reported elsewhere
		}
	}
	last := h.Operations[len(h.Operations)-1]
	for _, c := range last.Found { // it may have been stored again after the last event
		if known := latest[c.Key]; h.Rewritten && c.Version > known.Version {
			out[c.Key] = append(out[c.Key], step{Operation{Kind: rewrite, Key: c.Key, From: known.Version, Return: last.Return, Result: Done}, c})
		}
	}
	keys := map[string]bool{}
	for _, o := range h.Operations {
		keys[o.Key] = true
	}
	delete(keys, "") // that of lists
	for i := range h.Operations {
		o := &h.Operations[i]
		c := made[o]
		switch {
		case o.Kind == List && o.Result == Done:
			for key, s := range split(*o, keys) {
				out[key] = append(out[key], s)
			}
		case c != nil && c.answeredLate(): // it was created, and read afterwards
			read := *o
			read.Kind = Get
			out[o.Key] = append(out[o.Key], step{*o, c.Cluster}, step{read, o.found()})
		case o.Result != Unanswered && (o.Result != Taken || c == nil):
			out[o.Key] = append(out[o.Key], step{*o, o.found()})
		case c != nil: // it was applied before a watch was told
			applied := *o
			applied.Result, applied.Return = Done, min(o.Return, c.Told)
			out[o.Key] = append(out[o.Key], step{applied, c.Cluster})
		}
		// What no watch reported, though all reported everything up to the last list,
		// is applied after that, if at all.
	}
	return out
}

// split makes of a list a read of each cluster.
func split(list Operation, keys map[string]bool) map[string]step {
	out := map[string]step{}
	for key := range keys {
		read := list
		read.Kind, read.Key, read.Result, read.Found = Get, key, Missing, nil
		out[key] = step{read, Cluster{}}
	}
	for _, c := range list.Found {
		if s, is := out[c.Key]; is {
			s.Result, s.seen, s.Found = Done, c, []Cluster{c}
			out[c.Key] = s
		}
	}
	return out
}

// explain says which operations on a cluster find no place in the longest order that
// porcupine found.
func explain(key string, all []step, orders [][][]int) string {
	const shown = 4
	var longest []int
	for _, partition := range orders {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	now := Cluster{}
	left := map[int]bool{}
	for i := range all {
		left[i] = true
	}
	for _, i := range longest {
		now, _ = all[i].next(now)
		delete(left, i)
	}
	rest := slices.SortedFunc(maps.Keys(left), func(a, b int) int { return int(all[a].Return - all[b].Return) })
	var lines []string
	for _, i := range rest[:min(shown, len(rest))] {
		lines = append(lines, all[i].String())
	}
	return fmt.Sprintf("%d of %d operations on %s fit, after which it is %s; no place is left for\n  %s",
		len(longest), len(all), key, now, strings.Join(lines, "\n  "))
}
