// Command clusterregistry-helper does, inside the Pods of a registry, what the
// images of others can't: the etcd image has no shell.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"github.com/clusterregistry/operator/helper/backup"
	"github.com/clusterregistry/operator/helper/guard"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/memlimit"
)

func main() {
	memlimit.Apply()
	info := version.Get()
	cmd := &cobra.Command{
		Use:           "clusterregistry-helper",
		Short:         "Help inside the Pods of a registry",
		Version:       fmt.Sprintf("%s (commit %s, %s)", info.GitVersion, info.GitCommit, info.GitTreeState),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.AddCommand(install(), etcdGuard(), snapshots(), backups())
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(exitCode(err))
	}
}

// exitCode returns the code by which the operator knows why a member does not start, or
// that a backup can't be used.
func exitCode(err error) int {
	var refusal *guard.Refusal
	switch {
	case errors.As(err, new(*guard.Undecided)):
		return contract.GuardWaits
	case errors.As(err, &refusal) && refusal.Lost:
		return contract.GuardRefused
	case refusal != nil:
		return contract.GuardForeign
	case errors.As(err, new(*backup.DamagedError)):
		return contract.BackupDamaged
	}
	return 1
}

// text is a flag that must be given.
type text struct {
	target      *string
	name, usage string
}

func requireStrings(cmd *cobra.Command, flags []text) {
	for _, f := range flags {
		cmd.Flags().StringVar(f.target, f.name, "", f.usage)
		require(cmd, f.name)
	}
}

func require(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagRequired(flag); err != nil {
		panic(err)
	}
}
