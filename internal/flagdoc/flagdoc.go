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

// Check fails the test unless a page has the flags of a program, as a table between
// two comments that name it. A flag without a usage fails the test, too.
func Check(t *testing.T, page, program string, flags *pflag.FlagSet) {
	t.Helper()
	Described(t, program, flags)
	var rows []row
	for flag := range documented(flags) {
		rows = append(rows, rowOf(flag))
	}
	check(t, page, program, rows, false)
}

// CheckCommands does so with the flags of a program's commands, by the names of the commands, in
// one table: a flag that several commands have in one form has one row.
func CheckCommands(t *testing.T, page, program string, commands map[string]*pflag.FlagSet) {
	t.Helper()
	var rows []row
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		Described(t, program+" "+name, commands[name])
		for flag := range documented(commands[name]) {
			added := rowOf(flag)
			at := slices.IndexFunc(rows, func(r row) bool { return r.name == added.name && r.rest == added.rest })
			if at < 0 {
				at, rows = len(rows), append(rows, added)
			}
			rows[at].commands = append(rows[at].commands, "`"+name+"`")
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	check(t, page, program, rows, true)
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

// row is a line of a table: the flag, the commands that have it, its default and its usage.
type row struct {
	name, rest string
	commands   []string
}

func rowOf(f *pflag.Flag) row {
	kind, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if kind != "" {
		name += " " + kind
	}
	fallback := ""
	if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "<nil>" {
		fallback = "`" + f.DefValue + "`"
	}
	// What follows the first line is a list of hundreds of values.
	usage, _, more := strings.Cut(usage, "\n")
	if more {
		usage += " (see `--help`)"
	}
	return row{name: name, rest: fmt.Sprintf("%s | %s |", fallback, cell(usage))}
}

// table returns a table of rows, with a column for commands if there are any.
func table(rows []row, byCommand bool) string {
	out := &strings.Builder{}
	if byCommand {
		out.WriteString("| Flag | Commands | Default | What it is |\n|---|---|---|---|\n")
	} else {
		out.WriteString("| Flag | Default | What it is |\n|---|---|---|\n")
	}
	for _, r := range rows {
		commands := ""
		if byCommand {
			commands = strings.Join(r.commands, ", ") + " | "
		}
		fmt.Fprintf(out, "| `%s` | %s%s\n", cell(r.name), commands, r.rest)
	}
	return out.String()
}

// check compares the part of a page that is about a program with what it should be, or writes it.
func check(t *testing.T, page, program string, rows []row, byCommand bool) {
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
	want := table(rows, byCommand)
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

// cell returns a text that fits into a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(strings.Fields(text), " "))
}
