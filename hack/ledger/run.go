package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/clusterregistry/operator/hack/git"
	"github.com/clusterregistry/operator/hack/jsonl"
)

// runAll runs parts one after the other, and appends a row for each. It fails when one does.
func runAll(ctx context.Context, dir string, states []state, out io.Writer) error {
	if len(states) == 0 {
		fmt.Fprintln(out, "no part is to be run, or none fits: \"make test-list\" prints them")
		return nil
	}
	commit, err := committed(ctx, dir)
	if err != nil {
		return err
	}
	var failed []string
	for _, s := range states {
		fmt.Fprintf(out, "=== part %s of the ledger, about %d minutes\n", s.part.name, s.minutes())
		r, err := run(ctx, dir, s, out)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("part %s was interrupted, and has no row", s.part.name)
		}
		if now, err := committed(ctx, dir); err != nil || now != commit {
			return errors.Join(fmt.Errorf("part %s has no row: what it ran was changed meanwhile", s.part.name), err)
		}
		r.Commit = commit
		if err := r.append(dir); err != nil {
			return err
		}
		fmt.Fprintf(out, "=== part %s: %s after %d s\n", r.Part, r.Result, r.Seconds)
		if !r.passed() {
			failed = append(failed, r.Part)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d parts failed: %s; their logs are in .test", len(failed), len(states), strings.Join(failed, ", "))
	}
	return nil
}

// committed returns the commit that is checked out, or an error where the work tree differs from
// it. The ledger's own file does not matter.
func committed(ctx context.Context, dir string) (string, error) {
	changes, err := git.Run(ctx, dir, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!"+ledgerFile)
	if err != nil {
		return "", err
	}
	if changes != "" {
		return "", fmt.Errorf("the work tree differs from its commit, and a row of the ledger is for a commit: commit first\n%s", changes)
	}
	return git.Run(ctx, dir, "rev-parse", "HEAD")
}

// run runs a part in its cluster, which it takes down again.
func run(ctx context.Context, dir string, s state, out io.Writer) (row, error) {
	rows := filepath.Join(dir, ".test", "ledger-"+s.part.name+".jsonl")
	if err := os.MkdirAll(filepath.Dir(rows), 0o755); err != nil {
		return row{}, err
	}
	ofScript := filepath.Join(dir, ".test", "parts-"+strings.TrimSuffix(filepath.Base(s.part.command[0]), ".sh")+".jsonl")
	for _, before := range []string{rows, ofScript} {
		if err := os.Remove(before); err != nil && !errors.Is(err, os.ErrNotExist) {
			return row{}, err
		}
	}
	start := time.Now()
	if s.part.busy {
		defer occupy()()
	}
	env := append(os.Environ(), append(slices.Clone(s.part.env), "NAME=test", "PARTS_LOG=.test", "PARTS_ROWS="+rows, fmt.Sprintf("PARTS_TIMEOUT=%dm", longest))...)
	do := func(ctx context.Context, name string, command ...string) error {
		cmd := exec.CommandContext(ctx, "bin/hack/parts", append([]string{"run", name}, command...)...)
		// It gives what it runs time to tidy up.
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
		return cmd.Run()
	}
	// Errors are in the rows.
	if c := s.part.cluster; c != nil {
		target := []string{"make", "--no-print-directory"}
		_ = do(ctx, "cluster-down-before", append(target, "cluster-down")...)
		defer func() { _ = do(context.WithoutCancel(ctx), "cluster-down", append(target, "cluster-down")...) }()
		if do(ctx, "cluster", append(target, "cluster", "KUBERNETES_VERSION="+c.version, "NODES="+c.nodes)...) == nil &&
			do(ctx, "install", append(target, "e2e-ready", "PACKAGES="+c.packages)...) == nil &&
			do(ctx, s.part.name, s.part.command...) != nil {
			_ = do(ctx, "logs", "bin/cluster", "--name=test", "logs", ".test/cluster-logs-"+s.part.name)
		}
	} else {
		_ = do(ctx, s.part.name, s.part.command...)
	}
	return account(rows, ofScript, row{Part: s.part.name, Inputs: s.inputs, Date: start.UTC().Format(time.RFC3339), Seconds: int(time.Since(start).Seconds())})
}

// account completes the row of a part from those of its steps, and of the steps of a script
// that it ran.
func account(path, ofScript string, r row) (row, error) {
	steps, err := jsonl.Read[step](path)
	if err != nil {
		return row{}, err
	}
	below, err := jsonl.Read[step](ofScript)
	if err != nil {
		return row{}, err
	}
	r.Result = "FAILED: it did not run"
	for _, s := range append(steps, below...) {
		r.Retries += s.Retries
		if s.Name == r.Part {
			r.Load, r.Result = s.Pressure, s.Result
		}
		if s.Result != ok && s.Name != r.Part {
			r.Result = s.Result + " in " + s.Name
		}
	}
	return r, nil
}

// step is a row of hack/parts.
type step struct {
	Name     string `json:"name"`
	Pressure string `json:"pressure"`
	Result   string `json:"result"`
	Retries  int    `json:"retries"`
}

// occupy uses one core until the function that it returns is called.
func occupy() (stop func()) {
	var stopped atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !stopped.Load() {
			continue
		}
	}()
	return func() { stopped.Store(true); <-ended }
}
