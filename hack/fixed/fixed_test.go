package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestCopy has the copies of two clones be the same for "go test", and that of a changed
// file be another one although its size is the same.
func TestCopy(t *testing.T) {
	clone := func(content string) string {
		t.Helper()
		dir := t.TempDir()
		for name, text := range map[string]string{"a/kept": content, "a/tracked-then-deleted": "x", ".gitignore": "bin\n", "bin/ignored": "x"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}} {
			if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		if err := os.Remove(filepath.Join(dir, "a/tracked-then-deleted")); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	target := t.TempDir()
	stat := func(source string) [2]time.Time {
		t.Helper()
		if err := copyTo(context.Background(), source, target); err != nil {
			t.Fatal(err)
		}
		var times [2]time.Time
		for i, name := range []string{"a/kept", "a"} {
			info, err := os.Stat(filepath.Join(target, name))
			if err != nil {
				t.Fatal(err)
			}
			times[i] = info.ModTime()
		}
		return times
	}
	if err := os.MkdirAll(filepath.Join(target, "a/left/over"), 0o755); err != nil {
		t.Fatal(err)
	}
	first := stat(clone("one"))
	for _, gone := range []string{"a/left", "a/tracked-then-deleted", "bin"} {
		if _, err := os.Lstat(filepath.Join(target, gone)); err == nil {
			t.Errorf("%s is in the copy", gone)
		}
	}
	if again := stat(clone("one")); again != first {
		t.Errorf("another clone's times are %v, not %v", again, first)
	}
	if other := stat(clone("two")); other[0].Equal(first[0]) || other[1] != first[1] {
		t.Errorf("with another content the times are %v, and were %v", other, first)
	}
	if age := time.Since(first[0]); age < 10*365*24*time.Hour {
		t.Errorf("the time of change is %v", first[0])
	}
}
