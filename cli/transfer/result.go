package transfer

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// The results of an entry.
const (
	created = "created"
	same    = "same"
	differs = "differs"
	updated = "updated"
	refused = "refused"
)

// Result is what became of an entry.
type Result struct {
	// From is the object that was read.
	From string `json:"from"`
	// Name is the cluster's in the registry.
	Name string `json:"name,omitempty"`
	// Result is created, same, differs, updated or refused.
	Result string `json:"result"`
	// Message says why, or what to do.
	Message string `json:"message,omitempty"`
}

// unfinished counts the entries that differ or were refused.
func unfinished(results []Result) int {
	count := 0
	for _, result := range results {
		if result.Result == differs || result.Result == refused {
			count++
		}
	}
	return count
}

// report prints what became of each entry.
func (i *importer) report(results []Result) error {
	if i.output != "" {
		return i.output.Print(i.env.Out, results)
	}
	columns := tabwriter.NewWriter(i.env.Out, 0, 0, 3, ' ', 0)
	_, _ = io.WriteString(columns, "FROM\tCLUSTER\tRESULT"+i.dryRun.Suffix()+"\tMESSAGE\n")
	for _, result := range results {
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", result.From, result.Name, result.Result, result.Message)
	}
	return columns.Flush()
}
