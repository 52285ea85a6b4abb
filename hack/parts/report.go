package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/hack/jsonl"
)

// row accounts for a part.
type row struct {
	Name     string  `json:"name"`
	Seconds  float64 `json:"seconds"`
	CPU      float64 `json:"cpu"`
	Pressure string  `json:"pressure"`
	Result   string  `json:"result"`
	// Retries is how many lines tests have logged with "retry: ".
	Retries int `json:"retries"`
}

func (r row) save(dir string) error { return jsonl.Append(rowsFile(dir), r) }

// slowest is how many tests the report names.
const slowest = 20

// report prints the parts, the slowest tests, and the sum of all tests.
func report(dir string, out io.Writer) error {
	rows, err := jsonl.Read[row](rowsFile(dir))
	if err != nil {
		return err
	}
	var sum tests
	fmt.Fprintf(out, "%-28s %7s %7s %8s  %s\n", "part", "seconds", "CPU s", "pressure", "result")
	for _, r := range rows {
		fmt.Fprintf(out, "%-28s %7.0f %7.0f %8s  %s\n", r.Name, r.Seconds, r.CPU, r.Pressure, r.Result)
		if err := sum.read(testsFile(dir, r.Name), r.Name); err != nil {
			return err
		}
	}
	slices.SortStableFunc(sum.all, func(a, b result) int {
		if a.seconds != b.seconds {
			return int(1000 * (b.seconds - a.seconds))
		}
		return strings.Compare(a.name, b.name)
	})
	if len(sum.all) > 0 {
		fmt.Fprintf(out, "\nThe slowest tests, with the time in which a parallel one waited for its turn:\n")
	}
	for _, test := range sum.all[:min(slowest, len(sum.all))] {
		fmt.Fprintf(out, "%8.1f s  %s\n", test.seconds, test.name)
	}
	fmt.Fprintf(out, "\nretries: %d\n%d passed, %d failed, %d skipped\n", sum.retries, sum.verdicts["pass"], sum.verdicts["fail"], sum.verdicts["skip"])
	return nil
}

// tests sums up the tests of all parts.
type tests struct {
	// all are the tests, without subtests.
	all      []result
	verdicts map[string]int
	retries  int
}

type result struct {
	name    string
	seconds float64
}

// retried is how a test logs that it repeated something that is to succeed at once.
var retried = regexp.MustCompile(`^\s*(\S+\.go:\d+: )?retry: `)

// read adds the events of a part; one without tests has no file.
func (s *tests) read(path, part string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if s.verdicts == nil {
		s.verdicts = map[string]int{}
	}
	running := map[string]bool{}
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil && e.Test != "" {
			s.add(e, part, running)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	s.verdicts["fail"] += len(running) // those that have never ended
	return nil
}

func (s *tests) add(e event, part string, running map[string]bool) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "run":
		running[key] = true
	case "output":
		if retried.MatchString(e.Output) {
			s.retries++
		}
	case "pass", "fail", "skip":
		delete(running, key)
		s.verdicts[e.Action]++
		if !strings.Contains(e.Test, "/") {
			s.all = append(s.all, result{part + ": " + e.Package[strings.LastIndex(e.Package, "/")+1:] + "." + e.Test, e.Elapsed})
		}
	}
}
