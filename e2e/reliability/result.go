package reliability

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/history"
)

// result is what became of a cell: a row of the table in results.md.
type result struct {
	Cell      string `json:"cell"`
	Operation string `json:"operation"`
	Fault     string `json:"fault"`
	Members   int32  `json:"members"`
	// Writes counts the acknowledged writes, Lost those of them that are not there, and Problems
	// all else that no registry may do.
	Writes   int `json:"writes"`
	Lost     int `json:"lost"`
	Problems int `json:"problems"`
	// Failed counts the requests that failed, and Over is for how long after the fault some did.
	Failed int           `json:"failed"`
	Over   time.Duration `json:"over"`
	// Stall is the longest time in which no write was acknowledged, and Took is for how long
	// clients were recorded.
	Stall time.Duration `json:"stall"`
	Took  time.Duration `json:"took"`
}

// result makes the row of a cell, whose fault struck at a time.
func (c cell) result(figures history.Figures, problems []history.Problem, at, took time.Duration) result {
	lost := history.Count(problems, history.Lost)
	return result{Cell: c.id(), Operation: c.operation.name, Fault: c.fault.name, Members: c.members, Writes: figures.Writes, Lost: lost, Problems: len(problems) - lost,
		Failed: len(figures.Failures), Over: max(0, figures.Over()-at), Stall: figures.Stall, Took: took}
}

// judge fails the test unless the cell may have such a result.
func (c cell) judge(t *testing.T, r result, figures history.Figures, problems []history.Problem) {
	t.Helper()
	t.Logf("%s: %s", c, figures)
	if len(problems) > 0 {
		t.Errorf("the answers don't fit one registry that loses nothing:\n%s", history.Summary(problems))
	}
	for i, failure := range figures.Failures {
		if i < 5 || i >= len(figures.Failures)-5 {
			t.Logf("for example: %s", failure)
		}
	}
	if limit := c.stallLimit(); r.Stall > limit {
		t.Errorf("for %s no write was acknowledged: at most %s are allowed", r.Stall.Round(time.Second), limit)
	}
	switch {
	case r.Failed == 0 || c.tolerant():
	case !c.fault.node:
		t.Errorf("%d requests failed, and none may: a majority of the etcd members served all the time", r.Failed)
	case r.Over > lossLimit:
		t.Errorf("%s after the node was lost, a request failed: that is to be over within %s", r.Over.Round(time.Second), lossLimit)
	}
}

// stallLimit is how long no write may be acknowledged. What clients notice of an election of
// etcd, or of a server that is replaced, is a few seconds on a computer that is not busy.
func (c cell) stallLimit() time.Duration {
	switch {
	case c.tolerant():
		return 2 * time.Minute // until as many members are back as are a majority
	case c.fault.node:
		return lossLimit
	}
	return 30 * time.Second
}

// keep appends the result of a cell that has passed to those of this checkout.
func (c cell) keep(t *testing.T, r result) {
	t.Helper()
	if t.Failed() {
		return
	}
	row, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(framework.Root(t), ".test", "reliability.jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(file, "%s\n", row); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
