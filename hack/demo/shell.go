package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// shell runs commands before a reader's eyes, who sees each command as they could type
// it, and then what it prints.
type shell struct {
	// path are the directories of programs that come before those of $PATH.
	path []string
	out  io.Writer
}

// say prints a sentence about what comes next.
func (s shell) say(text string) { fmt.Fprintf(s.out, "\n%s\n", text) }

// run runs one command.
func (s shell) run(ctx context.Context, words ...string) error {
	_, err := s.read(ctx, words...)
	return err
}

// read runs one command, and returns what it prints, too.
func (s shell) read(ctx context.Context, words ...string) (string, error) {
	fmt.Fprintln(s.out, "$", typed(words))
	printed := &strings.Builder{}
	cmd := s.command(ctx, words)
	cmd.Stdout = io.MultiWriter(s.out, printed)
	cmd.Stderr = cmd.Stdout
	if err := cmd.Run(); err != nil {
		return printed.String(), fmt.Errorf("%s: %w; what it says is above", typed(words), err)
	}
	return printed.String(), nil
}

// command returns a command that finds programs, and plugins of kubectl, in the
// shell's path first.
func (s shell) command(ctx context.Context, words []string) *exec.Cmd {
	program := words[0]
	for i := len(s.path) - 1; i >= 0; i-- {
		if found := filepath.Join(s.path[i], words[0]); filepath.Base(program) == words[0] && executable(found) {
			program = found
		}
	}
	cmd := exec.CommandContext(ctx, program, words[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+strings.Join(append(s.path[:len(s.path):len(s.path)], os.Getenv("PATH")), string(os.PathListSeparator)))
	return cmd
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// eventTime bounds the wait for one event.
const eventTime = 2 * time.Minute

// watch runs a command that watches an object with --output-watch-events, makes a
// change when it has printed the object, and ends with an event whose line matches.
func (s shell) watch(ctx context.Context, words, change []string, until *regexp.Regexp) error {
	ctx, cancel := context.WithTimeout(ctx, eventTime)
	defer cancel()
	fmt.Fprintf(s.out, "$ %s &   # until %s, for %s at most\n", typed(words), strings.ReplaceAll(until.String(), `\s`, ""), eventTime)
	cmd := s.command(ctx, words)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	seen, err := s.follow(ctx, stdout, change, until)
	cancel()
	_ = cmd.Wait() // it watches until it is killed
	if err != nil {
		return err
	}
	if !seen {
		return fmt.Errorf("%s ended, or %s passed, before the change was seen: %s", typed(words), eventTime, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// follow prints what a watch prints, makes the change after the first object, and
// returns true with an event that matches.
func (s shell) follow(ctx context.Context, watched io.Reader, change []string, until *regexp.Regexp) (bool, error) {
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
		case strings.HasPrefix(line, "MODIFIED") && changed && until.MatchString(line):
			return true, nil
		}
	}
	return false, nil
}

// typed returns a command as one types it into a shell.
func typed(words []string) string {
	var out []string
	for _, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}
