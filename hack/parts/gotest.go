package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// event is what "go test -json" prints, see "go doc test2json".
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// test runs "go test" with args, prints what it prints without -json, and keeps the events
// in the file that $PARTS_TESTS names.
func test(args []string) (int, error) {
	kept := io.Discard
	if path := os.Getenv("PARTS_TESTS"); path != "" {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return 1, err
		}
		defer func() { _ = file.Close() }()
		kept = file
	}
	first := 0
	if len(args) > 1 && args[0] == "-C" { // it must be the first
		first = 2
	}
	cmd := exec.CommandContext(context.Background(), "go", slices.Concat([]string{"test"}, args[:first], []string{"-json"}, args[first:])...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	// A part that is stopped has its whole process group signaled. This process ends after
	// "go test", to say which tests ran then.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM)
	p := &printer{out: os.Stdout, verbose: slices.Contains(args, "-v"), tests: map[string]*output{}}
	err = p.print(io.TeeReader(out, kept))
	exit := &exec.ExitError{}
	if wait := cmd.Wait(); errors.As(wait, &exit) {
		return max(1, exit.ExitCode()), err
	} else if wait != nil {
		return 1, errors.Join(err, wait)
	}
	return 0, err
}

// printer prints the tests that fail.
type printer struct {
	out     io.Writer
	verbose bool
	// tests are those that have not passed, by package and name, and order is that
	// of their starts.
	tests map[string]*output
	order []string
}

type output struct {
	event  event // the first
	lines  []string
	failed bool
}

func (p *printer) print(events io.Reader) error {
	reader := bufio.NewReader(events)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprint(p.out, string(line)) // not of a test
			} else {
				p.handle(e)
			}
		}
		if err != nil {
			for len(p.order) > 0 { // of packages of which the end is not reported
				p.flush(p.tests[p.order[0]].event.Package, "")
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (p *printer) handle(e event) {
	switch {
	case p.verbose || e.Test == "" && e.Output != "PASS\n":
		fmt.Fprint(p.out, e.Output)
	case e.Test != "" && e.Action == "output" && !strings.HasPrefix(e.Output, "=== "):
		o := p.of(e)
		o.lines = append(o.lines, e.Output)
	}
	if p.verbose {
		return
	}
	switch {
	case e.Test != "" && e.Action == "run":
		p.of(e)
	case e.Test != "" && (e.Action == "pass" || e.Action == "skip"):
		p.forget(e.Package + " " + e.Test)
	case e.Test != "" && e.Action == "fail":
		p.of(e).failed = true
		if !strings.Contains(e.Test, "/") {
			p.flush(e.Package, e.Test)
		}
	case e.Test == "" && (e.Action == "fail" || e.Action == "pass"):
		p.flush(e.Package, "")
	}
}

func (p *printer) of(e event) *output {
	key := e.Package + " " + e.Test
	if p.tests[key] == nil {
		p.tests[key] = &output{event: e}
		p.order = append(p.order, key)
	}
	return p.tests[key]
}

func (p *printer) forget(key string) {
	delete(p.tests, key)
	p.order = slices.DeleteFunc(p.order, func(other string) bool { return other == key })
}

// flush prints what is left of a test with its subtests, or of a whole package: those that
// have failed, as "go test" does, and those that have never ended.
func (p *printer) flush(pkg, test string) {
	for _, key := range slices.Clone(p.order) {
		o := p.tests[key]
		if o.event.Package != pkg || test != "" && o.event.Test != test && !strings.HasPrefix(o.event.Test, test+"/") {
			continue
		}
		verdict := slices.IndexFunc(o.lines, func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: ") })
		switch {
		case verdict >= 0:
			depth := strings.Count(o.event.Test, "/")
			fmt.Fprint(p.out, strings.Repeat("    ", depth), strings.TrimLeft(o.lines[verdict], " "))
			o.lines = slices.Delete(o.lines, verdict, verdict+1)
		case !o.failed:
			fmt.Fprintf(p.out, "--- FAIL: %s (it has not ended)\n", o.event.Test)
		}
		fmt.Fprint(p.out, strings.Join(o.lines, ""))
		p.forget(key)
	}
}
