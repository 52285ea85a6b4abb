package framework

import (
	"fmt"

	"k8s.io/apimachinery/pkg/watch"
)

// checkTold compares what a watch told with what was acknowledged: of each
// cluster, every write exactly once and in order, and nothing else but a write
// that is in doubt, and what others stored if they may. What lists
// stand for need not be told.
func checkTold(all []told, gaps []gap, lives []*Life, rewritten bool) []string {
	byName := map[string][]write{}
	for _, t := range all {
		byName[t.name] = append(byName[t.name], t.write)
	}
	var problems []string
	for _, life := range lives {
		problems = append(problems, life.checkTold(byName[life.Name], gaps, rewritten)...)
		delete(byName, life.Name)
	}
	for name, writes := range byName {
		problems = append(problems, fmt.Sprintf("it told of %d changes of %s, which nobody wrote", len(writes), name))
	}
	return problems
}

// checkTold compares what a watch told of the life.
func (l *Life) checkTold(all []write, gaps []gap, rewritten bool) []string {
	var problems []string
	problem := func(format string, args ...any) {
		problems = append(problems, l.Name+": "+fmt.Sprintf(format, args...))
	}
	next := 0 // of the history
	miss := func() {
		if w := l.history[next]; !l.skipped(gaps, next) {
			problem("it missed %s in version %d", w.kind, w.version)
		}
		next++
	}
	doubts := 0
	if l.InDoubt {
		doubts = 1
	}
	var last uint64
	for _, got := range all {
		if got.version <= last {
			problem("it told of %s in version %d after version %d", got.kind, got.version, last)
			continue
		}
		last = got.version
		for next < len(l.history) && l.history[next].version != 0 && l.history[next].version < got.version {
			miss()
		}
		ended := next == len(l.history)
		same := !ended && got.version == l.history[next].version
		switch {
		case same && got.kind == relisted, !ended && got.kind == l.history[next].kind && (same || got.kind == watch.Deleted):
			next++
		case same:
			problem("it told of %s in version %d, which was %s", got.kind, got.version, l.history[next].kind)
			next++
		case rewritten && (got.kind == watch.Modified || got.kind == relisted):
		case doubts > 0 && ended:
			doubts--
		default:
			problem("it told of %s in version %d, which nobody wrote", got.kind, got.version)
		}
	}
	for next < len(l.history) {
		miss()
	}
	return problems
}
