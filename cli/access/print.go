package access

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/cli/command"
)

// print writes the report for people: the verdict, what needs attention, each set, and the
// bindings that are the reason.
func (r *Report) print(w io.Writer) error {
	out := &strings.Builder{}
	fmt.Fprintln(out, command.Plain(r.Verdict))
	for _, problem := range r.Problems {
		fmt.Fprintf(out, "  %s\n    next: %s\n", command.Plain(problem.Message), command.Plain(problem.Next))
	}
	fmt.Fprintln(out)
	rows := [][]string{{"SET", "READ SET", "SEE", "CHANGE", "MOVE", "CLUSTERS"}, r.All.row("<all>", "")}
	for _, set := range r.Sets {
		rows = append(rows, set.row(set.Name, answer(set.Join)))
	}
	command.Table(out, rows)
	if len(r.Grants) > 0 {
		fmt.Fprintln(out)
		rows := [][]string{{"BINDING", "ROLE", "TO", "GIVES"}}
		for _, grant := range r.Grants {
			for i, line := range given(grant.Rights) {
				if i == 0 {
					rows = append(rows, []string{grant.Binding, grant.Role, grant.Subject, line})
				} else {
					rows = append(rows, []string{" ", " ", " ", line})
				}
			}
		}
		command.Table(out, rows)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(out, "\nnote: %s\n", command.Plain(note))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// row returns the line of a scope.
func (s Scope) row(name, join string) []string {
	return []string{name, answer(s.Read), verbs(s.See, reads), verbs(s.Change, writes), join, listed(s.Clusters)}
}

// verbs returns yes for all of them, and else those that are allowed.
func verbs(allowed, all []string) string {
	switch len(allowed) {
	case 0:
		return "no"
	case len(all):
		return "yes"
	}
	return strings.Join(allowed, ",")
}

func answer(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// listed returns how many there are, and the first of them.
func listed(names []string) string {
	switch {
	case names == nil:
		return "" // they could not be listed
	case len(names) == 0:
		return "0"
	}
	return fmt.Sprintf("%d: %s", len(names), enumerate(names))
}

// given returns rights in few lines: one for each resource and list of verbs, with the names
// for which those are given.
func given(rights []Right) []string {
	var objects, lines []Right // without verbs, and with several in the place of one
	verbs, names := map[Right][]string{}, map[Right][]string{}
	for _, right := range rights {
		object := Right{Resource: right.Resource, Name: right.Name}
		if verbs[object] == nil {
			objects = append(objects, object)
		}
		verbs[object] = append(verbs[object], right.Verb)
	}
	for _, object := range objects {
		line := Right{Verb: strings.Join(verbs[object], ","), Resource: object.Resource}
		if names[line] == nil {
			lines = append(lines, line)
		}
		names[line] = append(names[line], object.Name)
	}
	var out []string
	for _, line := range lines {
		if !slices.Contains(names[line], "") {
			line.Name = enumerate(names[line])
		}
		out = append(out, line.String())
	}
	return out
}
