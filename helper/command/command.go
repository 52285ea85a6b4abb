// Package command is what the programs for the Pods of a registry share: how they begin and
// end, and flags that several commands have.
package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"github.com/clusterregistry/operator/helper/snapshot"
	"github.com/clusterregistry/operator/internal/install"
)

// Program returns the command of a program, to which it adds one that installs the program.
func Program(name, short string, commands ...*cobra.Command) *cobra.Command {
	info := version.Get()
	cmd := &cobra.Command{
		Use:           name,
		Short:         short,
		Version:       fmt.Sprintf("%s (commit %s, %s)", info.GitVersion, info.GitCommit, info.GitTreeState),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.AddCommand(install.Command(name))
	cmd.AddCommand(commands...)
	return cmd
}

// Run runs the command of a program, prints its error, and returns the code to exit with:
// what exitCode makes of that error.
func Run(cmd *cobra.Command, exitCode func(error) int) int {
	err := cmd.Execute()
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	return exitCode(err)
}

// Text is a flag with a text that must be given.
type Text struct {
	Target      *string
	Name, Usage string
}

// RequireTexts adds flags that must be given.
func RequireTexts(cmd *cobra.Command, flags []Text) {
	for _, f := range flags {
		cmd.Flags().StringVar(f.Target, f.Name, "", f.Usage)
		require(cmd, f.Name)
	}
}

func require(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagRequired(flag); err != nil {
		panic(err)
	}
}

// Etcd adds the flags that say how to reach etcd.
func Etcd(cmd *cobra.Command, etcd *snapshot.Etcd) {
	cmd.Flags().StringSliceVar(&etcd.Endpoints, "endpoints", nil, "URLs of etcd's members; one that is not the leader is asked if there is one")
	RequireTexts(cmd, []Text{
		{&etcd.CA, "cacert", "file with the CA that signs the members' certificates"},
		{&etcd.Cert, "cert", "file with the client certificate"},
		{&etcd.Key, "key", "file with its key"},
	})
	require(cmd, "endpoints")
}
