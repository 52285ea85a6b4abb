package reliability

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The table in results.md is between these lines.
const (
	pageBegins = "<!-- begin of what e2e/reliability has measured -->\n"
	pageEnds   = "<!-- end of it -->\n"
)

// parse reads results, one a line. Of a cell that is there more than once, the last counts.
func parse(content []byte) (map[string]result, error) {
	out := map[string]result{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%w: %s", err, lines.Bytes())
		}
		out[r.Cell] = r
	}
	return out, lines.Err()
}

// printResults writes results as parse reads them, in the order of cells.
func printResults(results map[string]result) ([]byte, error) {
	var out bytes.Buffer
	for _, c := range cells() {
		if r, is := results[c.id()]; is {
			row, err := json.Marshal(r)
			if err != nil {
				return nil, err
			}
			out.Write(append(row, '\n'))
		}
	}
	return out.Bytes(), nil
}

// table shows results, and names the cells that have none.
func table(results map[string]result) string {
	var out, missing strings.Builder
	out.WriteString("| operation | fault | members | acknowledged writes | lost | failed requests | longest stall | took |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range cells() {
		r, is := results[c.id()]
		if !is {
			fmt.Fprintf(&missing, "- %s\n", c)
			continue
		}
		failed := fmt.Sprint(r.Failed)
		if r.Failed > 0 {
			failed += ", the last " + seconds(r.Over) + " after the fault"
		}
		fmt.Fprintf(&out, "| %s | %s | %d | %d | %d | %s | %s | %s |\n", r.Operation, r.Fault, r.Members, r.Writes, r.Lost, failed, seconds(r.Stall), seconds(r.Took))
	}
	if missing.Len() > 0 {
		fmt.Fprintf(&out, "\nNot measured yet:\n\n%s", &missing)
	}
	return out.String()
}

func seconds(d time.Duration) string {
	if d >= 10*time.Second {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// fill puts a table into the page.
func fill(page, table string) (string, error) {
	begin, rest, found := strings.Cut(page, pageBegins)
	_, end, closed := strings.Cut(rest, pageEnds)
	if !found || !closed {
		return "", fmt.Errorf("the page has no lines %q and %q", pageBegins, pageEnds)
	}
	return begin + pageBegins + "\n" + table + "\n" + pageEnds + end, nil
}
