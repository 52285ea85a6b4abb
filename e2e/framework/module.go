package framework

import (
	"os/exec"
	"strings"
	"testing"
)

// ModuleDir returns the directory of a module that go.mod requires, with its files as they are
// published.
func ModuleDir(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = Root(t)
	out, err := cmd.Output()
	if err != nil || len(out) < 2 {
		t.Fatalf("find module %s: %s, %v", module, out, err)
	}
	return strings.TrimSpace(string(out))
}
