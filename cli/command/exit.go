package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes of kubectl-registry, which scripts rely on.
const (
	// ExitFailed: it failed, perhaps half-way; the error says where.
	ExitFailed = 1
	// ExitUsage: the command line is wrong, or names a context or a ClusterRegistry that
	// is not there. Nothing was changed.
	ExitUsage = 2
	// ExitRefused: a rule or a missing confirmation forbids it. Nothing was changed.
	ExitRefused = 3
	// ExitAttention: it is done, and something of what it shows needs attention.
	ExitAttention = 4
)

// exitError is an error that says what to exit with.
type exitError struct {
	code  int
	err   error
	shown bool
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// Usagef returns an error about the command line.
func Usagef(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

// Refusedf returns an error about what is not done, and changed nothing.
func Refusedf(format string, args ...any) error {
	return &exitError{code: ExitRefused, err: fmt.Errorf(format, args...)}
}

// Attentionf returns an error about what a finished command has shown.
func Attentionf(format string, args ...any) error {
	return &exitError{code: ExitAttention, err: fmt.Errorf(format, args...)}
}

// Shown returns an error like those of Attentionf whose text the command has printed
// already.
func Shown(text string) error {
	return &exitError{code: ExitAttention, err: errors.New(text), shown: true}
}

// IsShown reports whether the command has printed an error's text already.
func IsShown(err error) bool {
	var coded *exitError
	return errors.As(err, &coded) && coded.shown
}

// ExitCode returns what to exit with after an error, 0 for none.
func ExitCode(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.code
	}
	return ExitFailed
}

// Args makes what a rule for arguments finds an error about the command line.
func Args(rule cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := rule(cmd, args); err != nil {
			return Usagef("%w; see %q", err, cmd.CommandPath()+" --help")
		}
		return nil
	}
}

// oneOf returns an error about the command line unless a flag has one of some values.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	allowed = slices.DeleteFunc(allowed, func(a string) bool { return a == "" })
	return Usagef("--%s=%s: use %s", flag, Plain(value), strings.Join(allowed, " or "))
}
