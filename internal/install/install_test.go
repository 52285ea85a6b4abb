package install

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCopyProgram(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "volume", "helper")
	if err := os.WriteFile(from, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := copyProgram(from, to); err == nil {
		t.Error("it is copied to a directory that does not exist")
	}
	if err := os.Mkdir(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"first", "again, over the one of before"} {
		if err := copyProgram(from, to); err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		content, err := os.ReadFile(to)
		info, statErr := os.Stat(to)
		if err != nil || statErr != nil || string(content) != "program" || info.Mode() != 0o755 {
			t.Errorf("%s: %q, %v, %v, %v", reason, content, info.Mode(), err, statErr)
		}
	}
	if err := copyProgram(dir, to); err == nil {
		t.Error("a directory is a program")
	}
	left, err := os.ReadDir(filepath.Dir(to))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
