// Command kubectl-registry shows and drives cluster registries from kubectl.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/clusterregistry/operator/cli/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	cmd, name := root(command.New()), called(os.Args[0])
	rename(cmd, name)
	cmd.SetArgs(arguments(os.Args))
	err := cmd.ExecuteContext(ctx)
	if text := message(err); text != "" {
		fmt.Fprintln(os.Stderr, renamed(text, name))
	}
	os.Exit(command.ExitCode(err))
}

// message returns an error for the terminal, nothing when there is none to print. It can
// repeat what servers and the kubeconfigs of others say.
func message(err error) string {
	if err == nil || command.IsShown(err) {
		return ""
	}
	return "error: " + command.Plain(err.Error())
}

// arguments returns a process's arguments. Under the name by which kubectl asks
// plugins for completions they are those of cobra's hidden command for that, so that
// a link to the program is all that it takes.
func arguments(args []string) []string {
	if strings.HasPrefix(filepath.Base(args[0]), "kubectl_complete-") {
		return append([]string{"__complete"}, args[1:]...)
	}
	return args[1:]
}
