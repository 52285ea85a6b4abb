// Package flagdoc keeps the page that lists the flags of all programs up to date:
// each program's tests compare its part of the page with the flags that it has.
package flagdoc

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Update is the environment variable that, when it is set, has Check write the page
// instead of comparing it.
const Update = "UPDATE_DOCS"

// Check fails the test unless a page has the flags of a program, as a list between
// two comments that name it. A flag without a usage fails the test, too.
func Check(t *testing.T, page, program string, flags *pflag.FlagSet) {
	t.Helper()
	Described(t, program, flags)
	var lines []line
	for flag := range documented(flags) {
		lines = append(lines, lineOf(flag))
	}
	check(t, page, program, lines)
}

// CheckCommands does so with the flags of a program's commands, by the names of the commands, in
// one list: a flag that several commands have in one form has one line.
func CheckCommands(t *testing.T, page, program string, commands map[string]*pflag.FlagSet) {
	t.Helper()
	var lines []line
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		Described(t, program+" "+name, commands[name])
		for flag := range documented(commands[name]) {
			added := lineOf(flag)
			at := slices.IndexFunc(lines, func(l line) bool {
				return l.name == added.name && l.fallback == added.fallback && l.usage == added.usage
			})
			if at < 0 {
				at, lines = len(lines), append(lines, added)
			}
			lines[at].commands = append(lines[at].commands, "`"+name+"`")
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return strings.Compare(a.name, b.name) })
	check(t, page, program, lines)
}

// Described fails the test unless all flags of a program have a usage.
func Described(t *testing.T, program string, flags *pflag.FlagSet) {
	t.Helper()
	for _, name := range undescribed(flags) {
		t.Errorf("%s: the flag --%s has no description", program, name)
	}
}

// undescribed returns the names of the flags without a usage.
func undescribed(flags *pflag.FlagSet) []string {
	var out []string
	for flag := range documented(flags) {
		if _, usage := pflag.UnquoteUsage(flag); usage == "" {
			out = append(out, flag.Name)
		}
	}
	return out
}

// documented returns the flags that people are to see, in the order of their names.
func documented(flags *pflag.FlagSet) iter.Seq[*pflag.Flag] {
	return func(yield func(*pflag.Flag) bool) {
		more := true
		flags.VisitAll(func(f *pflag.Flag) {
			if more && !f.Hidden && f.Deprecated == "" {
				more = yield(f)
			}
		})
	}
}

// line is what there is to say of a flag, and the commands that have it.
type line struct {
	name, fallback, usage string
	commands              []string
}

func lineOf(f *pflag.Flag) line {
	kind, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if kind != "" {
		name += " " + kind
	}
	fallback := ""
	if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "<nil>" && f.DefValue != "false" {
		fallback = "default: `" + f.DefValue + "`"
	}
	// What follows the first line is a list of hundreds of values.
	usage, _, more := strings.Cut(usage, "\n")
	if more {
		usage += " (see `--help`)"
	}
	return line{name: name, fallback: fallback, usage: strings.ReplaceAll(strings.Join(strings.Fields(usage), " "), "<", "&lt;")}
}

// list returns a list of flags in Markdown.
func list(lines []line) string {
	out := &strings.Builder{}
	for _, l := range lines {
		var notes []string
		for _, note := range []string{strings.Join(l.commands, ", "), l.fallback} {
			if note != "" {
				notes = append(notes, note)
			}
		}
		about := ""
		if len(notes) > 0 {
			about = " (" + strings.Join(notes, "; ") + ")"
		}
		fmt.Fprintf(out, "- `%s`%s: %s\n", l.name, about, l.usage)
	}
	return out.String()
}

// check compares the part of a page that is about a program with what it should be, or writes it.
func check(t *testing.T, page, program string, lines []line) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- begin flags of %s -->\n", program), fmt.Sprintf("<!-- end flags of %s -->\n", program)
	before, rest, found := strings.Cut(string(content), begin)
	have, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the flags of %s: two lines, %q and %q", page, program, begin, end)
	}
	want := list(lines)
	if have == want {
		return
	}
	if os.Getenv(Update) == "" {
		t.Fatalf("%s does not have the flags of %s as they are; run \"make update-codegen\"", page, program)
	}
	if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
