package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/operator/version"
)

// tableFile is the page with the table of the releases; others link to it.
const tableFile = "docs/reference/compatibility.md"

// begin and end are around the table.
const (
	begin = "<!-- begin: written by \"make update-codegen\" from operator/version/releases.yaml -->\n"
	end   = "<!-- end -->\n"
)

// writeTable writes the table of the releases into the page that has it.
func writeTable(releases []version.Release) error {
	content, err := os.ReadFile(tableFile)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(content, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return fmt.Errorf("%s has no place for the table: two lines, %q and %q", tableFile, begin, end)
	}
	return os.WriteFile(tableFile, []byte(string(before)+begin+table(releases)+end+string(after)), 0o644)
}

func table(releases []version.Release) string {
	out := &strings.Builder{}
	fmt.Fprintln(out, "| Release | Serves | Stores | Reads | etcd | Kubernetes of the host cluster | kubectl | Upgrade from | Rollback to |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|")
	for _, r := range releases {
		var returns []string
		for _, from := range releases {
			if slices.Contains(r.UpgradesFrom, from.Version) && version.CanReturn(from, r) {
				returns = append(returns, from.Version)
			}
		}
		name := r.Version
		if version.CheckSupport(releases, name, false) != nil {
			name += " (no longer supported)"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s to %s | %s to %s | %s | %s |\n", name, strings.Join(r.Serves, ", "), r.Stores, strings.Join(r.Reads, ", "), r.Etcd,
			r.Host.From, r.Host.To, r.Kubectl.From, r.Kubectl.To, cmp.Or(strings.Join(r.UpgradesFrom, ", "), "-"), cmp.Or(strings.Join(returns, ", "), "-"))
	}
	return out.String()
}
