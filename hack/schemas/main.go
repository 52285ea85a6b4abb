// Command schemas guards the APIs that are served:
//
//	schemas verify   "make verify-schemas": fails when a schema refuses, loses or reads
//	                 otherwise what the baseline allows, and warns of new rules
//	schemas update   "make update-schemas": makes the present schemas the baseline
//
// The baseline is what users may rely on: the schemas of the last release, and until there is
// one, those that were committed last. What is added needs no other baseline.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const baselineFile = "hack/schemas/baseline.json"

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	now, err := served(".")
	if err != nil {
		return err
	}
	switch {
	case slices.Equal(args, []string{"update"}):
		return write(baselineFile, now)
	case slices.Equal(args, []string{"verify"}):
		before, err := read(baselineFile)
		if err != nil {
			return err
		}
		return report(out, compare(before, now))
	}
	return errors.New("usage: schemas verify, or schemas update")
}

// report prints warnings, and returns an error that has all that is incompatible.
func report(out io.Writer, findings []finding) error {
	var refused []string
	for _, f := range findings {
		if f.warning {
			fmt.Fprintln(out, "warning:", f)
			continue
		}
		refused = append(refused, "  "+f.String())
	}
	if len(refused) == 0 {
		return nil
	}
	return fmt.Errorf("schemas changed in ways that break clients or stored objects:\n%s\n"+
		"Undo these changes, or leave what is there and add a field beside it. If no one can rely on it yet, as before the first release, "+
		"make the present schemas the baseline with \"make update-schemas\", and give the reason in the commit", strings.Join(refused, "\n"))
}
