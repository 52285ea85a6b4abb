package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// shell runs kubectl before a reader's eyes: he sees each command as he could
// type it, and then what it prints.
type shell struct {
	program string
	out     io.Writer
}

// say prints a sentence about what comes next.
func (s shell) say(text string) { fmt.Fprintf(s.out, "\n%s\n", text) }

// run runs one command.
func (s shell) run(ctx context.Context, args ...string) error {
	fmt.Fprintln(s.out, "$", typed(args))
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Stdout, cmd.Stderr = s.out, s.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w; what it says is above", typed(args), err)
	}
	return nil
}

// eventTime bounds the wait for one event.
const eventTime = time.Minute

// watch runs a command that watches an object with --output-watch-events, makes
// a change when it has printed the object, and ends with the change's event.
func (s shell) watch(ctx context.Context, args, change []string) error {
	ctx, cancel := context.WithTimeout(ctx, eventTime)
	defer cancel()
	fmt.Fprintln(s.out, "$", typed(args), "&")
	cmd := exec.CommandContext(ctx, s.program, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	seen, err := s.follow(ctx, stdout, change)
	cancel()
	_ = cmd.Wait() // it watches until it is killed
	if err != nil {
		return err
	}
	if !seen {
		return fmt.Errorf("%s ended, or %s passed, before the change was seen: %s", typed(args), eventTime, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// follow prints what a watch prints, makes the change after the first object,
// and returns true with the change's event.
func (s shell) follow(ctx context.Context, watched io.Reader, change []string) (bool, error) {
	changed := false
	for lines := bufio.NewScanner(watched); lines.Scan(); {
		line := lines.Text()
		fmt.Fprintln(s.out, line)
		switch {
		case strings.HasPrefix(line, "ADDED") && !changed:
			changed = true
			if err := s.run(ctx, change...); err != nil {
				return false, err
			}
		case strings.HasPrefix(line, "MODIFIED") && changed:
			return true, nil
		}
	}
	return false, nil
}

// typed returns a command of kubectl as one types it into a shell.
func typed(args []string) string {
	words := []string{"kubectl"}
	for _, arg := range args {
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
