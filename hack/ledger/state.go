package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterregistry/operator/hack/git"
	"github.com/clusterregistry/operator/hack/jsonl"
)

// state is what the ledger knows of a part.
type state struct {
	part part
	// inputs is the hash of what it depends on in the commit that is checked out.
	inputs string
	// last is the last run, and passed the last one that passed; nil for none.
	last, passed *row
	// age is how many commits came after that of passed; never where there is none in this
	// history.
	age int
}

// never is older than any commit.
const never = 1 << 30

// fresh reports whether the part passed with what it depends on in this commit. A part that
// has failed since is not.
func (s state) fresh() bool {
	return s.passed != nil && s.last == s.passed && s.passed.Inputs == s.inputs
}

// minutes returns what the part takes by its last run that passed.
func (s state) minutes() int {
	if s.passed == nil {
		return s.part.minutes
	}
	return s.passed.Seconds/60 + 1
}

func readStates(ctx context.Context, dir string, parts []part) ([]state, error) {
	rows, err := jsonl.Read[row](filepath.Join(dir, ledgerFile))
	if err != nil {
		return nil, err
	}
	tree, err := readTree(ctx, dir)
	if err != nil {
		return nil, err
	}
	var states []state
	for _, p := range parts {
		s := state{part: p, age: never}
		if s.inputs, err = tree.inputs(p); err != nil {
			return nil, err
		}
		s.read(rows)
		if s.passed != nil {
			s.age = age(ctx, dir, s.passed.Commit)
		}
		states = append(states, s)
	}
	return states, nil
}

// read takes over what rows say of the part.
func (s *state) read(rows []row) {
	for i := range rows {
		if r := &rows[i]; r.Part == s.part.name {
			s.last = r
			if r.passed() {
				s.passed = r
			}
		}
	}
}

// age returns how many commits came after one.
func age(ctx context.Context, dir, commit string) int {
	out, err := git.Run(ctx, dir, "rev-list", "--count", commit+"..HEAD")
	if err != nil {
		return never // a commit of another history
	}
	n, err := strconv.Atoi(out)
	if err != nil {
		return never
	}
	return n
}

// waiting returns the parts that are not fresh, in the order in which they need a run:
// those that failed last, those that never passed, and then the one that passed first.
func waiting(states []state) []state {
	out := slices.DeleteFunc(slices.Clone(states), state.fresh)
	urgency := func(s state) int {
		switch {
		case s.last != nil && !s.last.passed():
			return 0
		case s.passed == nil:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(a, b state) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), cmp.Compare(b.age, a.age))
	})
	return out
}

// fitting returns those of the waiting parts that fit in so many minutes.
func fitting(states []state, minutes int) (out []state) {
	for _, s := range waiting(states) {
		if m := s.minutes(); m <= minutes {
			out, minutes = append(out, s), minutes-m
		}
	}
	return out
}

// list prints the parts.
func list(out io.Writer, states []state) error {
	fmt.Fprintf(out, "%-34s %7s  %-12s %-8s %7s  %s\n", "part", "minutes", "passed at", "commits", "retries", "now")
	for _, s := range states {
		at, commits, retries := "never", "-", "-"
		if s.passed != nil {
			at, retries = s.passed.Date[:10], strconv.Itoa(s.passed.Retries)
			if s.age != never {
				commits = strconv.Itoa(s.age)
			}
		}
		fmt.Fprintf(out, "%-34s %7d  %-12s %-8s %7s  %s\n", s.part.name, s.minutes(), at, commits, retries, s.now())
	}
	return nil
}

func (s state) now() string {
	switch {
	case s.fresh():
		return "fresh"
	case s.last != nil && !s.last.passed():
		return s.last.Result
	case s.passed == nil:
		return "to be run"
	}
	return "what it depends on has changed"
}

// old prints the parts that have not passed within so many commits. That is a reminder and no
// error: "make test-next" works it off.
func old(out io.Writer, states []state, commits int) error {
	var names []string
	for _, s := range states {
		if s.age > commits {
			names = append(names, s.part.name)
		}
	}
	const few = 5
	if len(names) > few {
		names = append(names[:few:few], fmt.Sprintf("and %d more", len(names)-few))
	}
	if len(names) > 0 {
		fmt.Fprintf(out, "These parts of \"make test-full\" have not passed within %d commits (\"make test-list\" prints all, \"make test-next MINUTES=80\" runs those that need it most): %s\n",
			commits, strings.Join(names, ", "))
	}
	return nil
}
