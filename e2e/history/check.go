package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rule is what a problem violates.
type Rule string

const (
	// Lost is an acknowledged write that is not there.
	Lost Rule = "acknowledged write lost"
	// Linearizable is an answer that does not fit the others about the same cluster.
	Linearizable Rule = "not linearizable"
	// Backward is a version that is lower than one that was told before.
	Backward Rule = "resourceVersion goes back"
	// Watched is a change that a watch was not told, told twice, or should not have been told.
	Watched Rule = "watch"
	// Snapshot is a list that mixes times.
	Snapshot Rule = "list"
	// Identity is a spec.id that two clusters have.
	Identity Rule = "spec.id shared"
	// Incomplete is a history that proves nothing.
	Incomplete Rule = "incomplete history"
)

// Problem is something that no registry may do.
type Problem struct {
	Rule Rule
	Text string
}

func (p Problem) String() string { return string(p.Rule) + ": " + p.Text }

func problem(rule Rule, format string, args ...any) Problem {
	return Problem{rule, fmt.Sprintf(format, args...)}
}

// patience is how long porcupine may think about one cluster.
const patience = time.Minute

// Check returns what a history shows that no registry may do, nothing when all is well.
func Check(h History) []Problem {
	if text := h.incomplete(); text != "" {
		return []Problem{problem(Incomplete, "%s", text)}
	}
	log, problems := merge(h.Watches)
	problems = append(problems, log.own(h)...)
	problems = append(problems, backward(h, log)...)
	problems = append(problems, snapshots(h, log)...)
	problems = append(problems, linearizable(h, log, patience)...)
	return problems
}

// incomplete says why a history proves nothing.
func (h History) incomplete() string {
	if len(h.Operations) == 0 {
		return "nothing was asked"
	}
	last := h.Operations[len(h.Operations)-1]
	if last.Kind != List || last.Result != Done {
		return fmt.Sprintf("it ends with %s, and not with a list that was answered", last)
	}
	if slices.ContainsFunc(h.Operations, func(o Operation) bool { return o.Return != Open && o.Return > last.Call && o.Call < last.Call }) {
		return "the last list was begun before everything else was answered"
	}
	if len(h.Watches) == 0 {
		return "nothing was watched"
	}
	from, to := covered(h.Watches)
	if from < to {
		return fmt.Sprintf("no watch reported versions %d to %d: each had to begin again", from+1, to)
	}
	for _, c := range last.Found {
		if to < c.Version {
			return fmt.Sprintf("watches were told up to version %d only, and the last list shows %s in version %d", to, c.Key, c.Version)
		}
	}
	return ""
}

// covered returns the version up to which watches together reported all changes since the
// first of them began, and the one after which they were told again; the same where there is
// no gap.
func covered(watches []Watch) (to, again uint64) {
	sorted := slices.SortedFunc(slices.Values(watches), func(a, b Watch) int { return cmp.Compare(a.From, b.From) })
	to = sorted[0].To
	for _, w := range sorted {
		if w.From > to {
			return to, w.From
		}
		to = max(to, w.To)
	}
	return to, to
}

// Count returns how many of some problems violate a rule.
func Count(problems []Problem, rule Rule) (count int) {
	for _, p := range problems {
		if p.Rule == rule {
			count++
		}
	}
	return count
}

// Summary tells problems line by line: of each rule the first few.
func Summary(problems []Problem) string {
	const shown = 5
	var lines []string
	seen := map[Rule]int{}
	for _, p := range problems {
		if seen[p.Rule]++; seen[p.Rule] <= shown {
			lines = append(lines, p.String())
		}
	}
	for _, rule := range []Rule{Lost, Linearizable, Backward, Watched, Snapshot, Identity, Incomplete} {
		if seen[rule] > shown {
			lines = append(lines, fmt.Sprintf("%s: %d in all", rule, seen[rule]))
		}
	}
	return strings.Join(lines, "\n")
}
