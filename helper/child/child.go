// Package child runs programs that belong to this one: they end when it does.
package child

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// Command returns a command that runs a program until it ends, the context does, or this
// process: what it writes to is used again by the process that comes after. It is not given
// what the environment says to etcd, which is meant for the member in whose pod it runs.
func Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "ETCD_") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}
