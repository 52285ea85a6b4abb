package command

import (
	"io"
	"text/tabwriter"
)

// Table writes rows in columns, the first with their names. An empty cell is a dash.
func Table(w io.Writer, rows [][]string) {
	columns := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if cell = Plain(cell); cell == "" {
				cell = "-"
			}
			end := "\t"
			if i == len(row)-1 {
				end = "\n"
			}
			_, _ = io.WriteString(columns, cell+end)
		}
	}
	_ = columns.Flush() // a terminal that is gone has no one to tell
}
