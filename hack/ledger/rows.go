package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// row is a run of a part. Rows are in the order of runs, and none is removed.
type row struct {
	Part string `json:"part"`
	// Inputs is the hash of what it depends on, see inputs.
	Inputs string `json:"inputs"`
	Commit string `json:"commit"`
	// Date is when it began, in RFC 3339.
	Date    string `json:"date"`
	Seconds int    `json:"seconds"`
	Retries int    `json:"retries"`
	// Load is the share of the time in which something waited for a processor, or the load
	// average, as in the report of hack/parts.
	Load string `json:"load"`
	// Result is ok, or why it failed.
	Result string `json:"result"`
}

func (r row) passed() bool { return r.Result == ok }

const ok = "ok"

// ledgerFile is relative to the checkout's root.
const ledgerFile = "test/ledger.jsonl"

// readRows reads JSON lines; no file is no row.
func readRows[R any](path string) (rows []R, _ error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		var r R
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (r row) append(dir string) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, ledgerFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}
