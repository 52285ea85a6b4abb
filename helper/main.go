// Command clusterregistry-helper does, inside the Pods of a registry, what the
// images of others can't: the etcd image has no shell.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"github.com/clusterregistry/operator/helper/guard"
)

func main() {
	info := version.Get()
	cmd := &cobra.Command{
		Use:           "clusterregistry-helper",
		Short:         "Help inside the Pods of a registry",
		Version:       fmt.Sprintf("%s (commit %s, %s)", info.GitVersion, info.GitCommit, info.GitTreeState),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.AddCommand(etcdGuard(), snapshots())
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// etcdGuard returns the command of the init container of every etcd member.
func etcdGuard() *cobra.Command {
	var dataDir, identityDir, member string
	cmd := &cobra.Command{
		Use:   "etcd-guard",
		Short: "Fail unless etcd may start on the data that it would find",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := guard.Check(dataDir, identityDir, member)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), found)
			}
			return err
		},
	}
	requireStrings(cmd, []text{
		{&dataDir, "data-dir", "etcd's own --data-dir"},
		{&identityDir, "identity-dir", "folder of the mounted ConfigMap that records which cluster and member the data belongs to"},
		{&member, "member", "name of the member, which is that of its Pod"},
	})
	return cmd
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
