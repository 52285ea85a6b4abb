// Command parts runs the parts of a test run for hack/parts.sh, which says what a part is,
// and accounts for them:
//
//	parts begin                       forget the last run, and end what a killed one has left
//	parts run NAME COMMAND [ARG...]   run a part
//	parts row NAME SECONDS RESULT     account for one that was not run
//	parts test [ARG...]               run "go test", and keep its events for the report
//	parts report                      print the tables
//
// $PARTS_LOG is the directory of logs, $PARTS_ROWS the file of what has been run, $PARTS_OWNER the process without which a part is
// pointless, $PARTS_TIMEOUT the longest that one may take. With PARTS_LANE=low a part gets
// what processor time others leave. With PARTS_WHOLE=1 its output is shown in one piece
// when it has ended: another part runs at the same time.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func main() {
	code, err := command(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func command(args []string) (int, error) {
	if len(args) == 0 {
		return 2, errors.New("parts begin, run, row, test or report; see the comment at the top of hack/parts/main.go")
	}
	dir := cmp.Or(os.Getenv("PARTS_LOG"), ".test")
	verb, args := args[0], args[1:]
	switch {
	case verb == "begin":
		return 0, begin(dir)
	case verb == "run" && len(args) > 1:
		return run(dir, args[0], args[1:])
	case verb == "row" && len(args) == 3:
		seconds, err := strconv.ParseFloat(args[1], 64)
		if err != nil {
			return 2, fmt.Errorf("parts row: seconds: %w", err)
		}
		return 0, row{Name: args[0], Seconds: seconds, Result: args[2]}.save(dir)
	case verb == "test":
		return test(args)
	case verb == "report":
		return 0, report(dir, os.Stdout)
	}
	return 2, fmt.Errorf("parts %s %q: see the comment at the top of hack/parts/main.go", verb, args)
}

func begin(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Remove(rowsFile(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return endAbandoned(os.Stdout)
}

// timeout returns how long a part may take.
func timeout() (time.Duration, error) {
	limit, err := time.ParseDuration(cmp.Or(os.Getenv("PARTS_TIMEOUT"), "24h"))
	if err != nil {
		err = fmt.Errorf("PARTS_TIMEOUT: %w; write it like 40m", err)
	}
	return limit, err
}

func rowsFile(dir string) string {
	return cmp.Or(os.Getenv("PARTS_ROWS"), filepath.Join(dir, "parts.jsonl"))
}

// testsFile returns where the events of a part's tests are.
func testsFile(dir, name string) string { return filepath.Join(dir, name+".tests.jsonl") }
