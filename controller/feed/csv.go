package feed

import (
	"encoding/csv"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// writeCSV writes a table as RFC 4180 has it, with a header.
func writeCSV(_ *Server, out *limited, entries iter.Seq[*entry]) error {
	table := csv.NewWriter(out)
	table.UseCRLF = true
	rows := []string{"name", "clusterID", "clusterSet", "provider", "address", "verified", "reason", "labels", "ca"}
	if err := table.Write(rows); err != nil {
		return err
	}
	for e := range entries {
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(e.Labels)) {
			labels = append(labels, key+"="+e.Labels[key])
		}
		row := []string{e.Name, e.ID, e.Set, e.Provider, e.Address, strconv.FormatBool(e.Verified), e.Reason, strings.Join(labels, ","), e.CA()}
		for i, text := range row {
			row[i] = cell(text)
		}
		if err := table.Write(row); err != nil {
			return err
		}
	}
	table.Flush()
	return table.Error()
}

// cell returns a text as a spreadsheet takes it for one: those that begin in some ways are formulas
// to it.
func cell(text string) string {
	if strings.IndexAny(text, "=+-@\t\r\n") == 0 {
		return "'" + text
	}
	return text
}
