// Package flagdoc keeps the page that lists the flags of all programs up to date:
// each program's tests compare its part of the page with the flags that it has.
package flagdoc

import (
	"fmt"
	"os"
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
	want, err := table(flags)
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
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

// table returns a row for each flag, in the order of their names.
func table(flags *pflag.FlagSet) (string, error) {
	out := &strings.Builder{}
	out.WriteString("| Flag | Default | What it is |\n|---|---|---|\n")
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		if usage == "" && err == nil {
			err = fmt.Errorf("the flag --%s has no description", f.Name)
		}
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
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", name, fallback, cell(usage))
	})
	return out.String(), err
}

// cell returns a text that fits into a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(strings.Fields(text), " "))
}
