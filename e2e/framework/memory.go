package framework

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// LimitMemory has a command, which was not started yet, run within so many bytes of memory,
// as a container with that limit: the kernel kills it when it needs more. It collects garbage
// as it does there, whatever the tests' GOGC is. It needs root.
func LimitMemory(t *testing.T, cmd *exec.Cmd, bytes int64) {
	t.Helper()
	// The first version of control groups has a hierarchy for memory, the second one for all.
	root, limit := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(filepath.Join(root, limit)); err != nil {
		root, limit = "/sys/fs/cgroup", "memory.max"
	}
	group, err := os.MkdirTemp(root, "clusterregistry-test-")
	if err != nil {
		t.Fatalf("%v: a control group for memory is needed, and so root", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(group); err != nil { // not below: what is in it is the kernel's
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(group, limit), []byte(strconv.FormatInt(bytes, 10)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "GOGC=") })
	script := fmt.Sprintf(`echo $$ > %s/cgroup.procs && exec "$@"`, group)
	cmd.Args = append([]string{"sh", "-c", script, "sh", cmd.Path}, cmd.Args[1:]...)
	if cmd.Path, err = exec.LookPath("sh"); err != nil {
		t.Fatal(err)
	}
}
