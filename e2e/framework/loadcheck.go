package framework

import (
	"fmt"

	"k8s.io/apimachinery/pkg/watch"
)

// checkTold compares what a watch told with what was acknowledged: of each
// cluster, every write exactly once and in order, and nothing else but a write
// that is in doubt, and what others stored if they may.
func checkTold(all []told, lives []*Life, rewritten bool) []string {
	byName := map[string][]write{}
	for _, t := range all {
		byName[t.name] = append(byName[t.name], t.write)
	}
	var problems []string
	for _, life := range lives {
		problems = append(problems, life.checkTold(byName[life.Name], rewritten)...)
		delete(byName, life.Name)
	}
	for name, writes := range byName {
		problems = append(problems, fmt.Sprintf("it told of %d changes of %s, which nobody wrote", len(writes), name))
	}
	return problems
}

// checkTold compares what a watch told of the life.
func (l *Life) checkTold(all []write, rewritten bool) []string {
	var problems []string
	problem := func(format string, args ...any) {
		problems = append(problems, l.Name+": "+fmt.Sprintf(format, args...))
	}
	missed := l.history
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
		for len(missed) > 0 && missed[0].version != 0 && missed[0].version < got.version {
			problem("it missed %s in version %d", missed[0].kind, missed[0].version)
			missed = missed[1:]
		}
		switch {
		case len(missed) > 0 && got.kind == missed[0].kind && (got.version == missed[0].version || got.kind == watch.Deleted):
			missed = missed[1:]
		case len(missed) > 0 && got.version == missed[0].version:
			problem("it told of %s in version %d, which was %s", got.kind, got.version, missed[0].kind)
			missed = missed[1:]
		case rewritten && got.kind == watch.Modified:
		case doubts > 0 && len(missed) == 0:
			doubts--
		default:
			problem("it told of %s in version %d, which nobody wrote", got.kind, got.version)
		}
	}
	for _, w := range missed {
		problem("it missed %s in version %d", w.kind, w.version)
	}
	return problems
}
