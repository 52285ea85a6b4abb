package framework

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Example is a running example of this checkout.
type Example struct {
	log lockedBuffer
}

// StartExample starts an example that "make examples" has built into bin; it ends with the
// test, and when the test failed its log is shown.
func StartExample(t *testing.T, name string, flags ...string) *Example {
	t.Helper()
	e := &Example{}
	cmd := exec.Command(filepath.Join(Root(t), "bin", name), flags...) //nolint:gosec,noctx // it outlives the test's context
	cmd.Stdout, cmd.Stderr = &e.log, &e.log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v; \"make examples\" builds it", name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("%s had ended: %v", name, err)
		}
		if err := <-ended; err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
		if t.Failed() {
			t.Logf("the log of %s:\n%s", name, e.log.String())
		}
	})
	return e
}

// Said returns an error unless a line of the log has all texts, at least so many times.
func (e *Example) Said(times int, texts ...string) error {
	found := 0
	for line := range strings.Lines(e.log.String()) {
		has := true
		for _, text := range texts {
			has = has && strings.Contains(line, text)
		}
		if has {
			found++
		}
	}
	if found < times {
		return fmt.Errorf("the log has %q %d times, not %d times", texts, found, times)
	}
	return nil
}

// Lines returns the lines of the log so far.
func (e *Example) Lines() []string {
	return slices.Collect(strings.Lines(e.log.String()))
}
