package main

import (
	"os"
	"path/filepath"

	"github.com/clusterregistry/operator/hack/jsonl"
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

func (r row) append(dir string) error {
	path := filepath.Join(dir, ledgerFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return jsonl.Append(path, r)
}
