package main

import (
	"fmt"

	"github.com/spf13/cobra"
	// Signs in to registries as kubectl does: with exec plugins and OIDC.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/version"

	"github.com/clusterregistry/operator/cli/access"
	"github.com/clusterregistry/operator/cli/backup"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/diagnose"
	"github.com/clusterregistry/operator/cli/etcd"
	"github.com/clusterregistry/operator/cli/join"
	"github.com/clusterregistry/operator/cli/kubeconfig"
	"github.com/clusterregistry/operator/cli/recovery"
	"github.com/clusterregistry/operator/cli/report"
	"github.com/clusterregistry/operator/cli/restore"
	"github.com/clusterregistry/operator/cli/status"
	"github.com/clusterregistry/operator/cli/transfer"
	"github.com/clusterregistry/operator/cli/ui"
	"github.com/clusterregistry/operator/cli/upgrade"
)

// root returns the command with all others below it.
func root(env *command.Env) *cobra.Command {
	info := version.Get()
	cmd := &cobra.Command{
		Use:   "kubectl-registry",
		Short: "Show and drive cluster registries",
		Long: `Show and drive cluster registries.

The registry is that of the current context of the kubeconfig, or of --context: the context of
the host cluster for an aggregated registry, the registry's own for an independent one.

Exit codes: 0 done; 1 failed; 2 the command line is wrong; 3 refused or not confirmed, nothing was
changed; 4 done, and something that is shown needs attention.`,
		Version:       fmt.Sprintf("%s (commit %s, %s)", info.GitVersion, info.GitCommit, info.GitTreeState),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl registry"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: command.Args(func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("there is no command %q", command.Plain(args[0]))
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(env.In)
	cmd.SetOut(env.Out)
	cmd.SetErr(env.ErrOut)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return command.Usagef("%w; see %q", err, cmd.CommandPath()+" --help")
	})
	env.Flags.AddFlags(cmd.PersistentFlags())
	_ = cmd.RegisterFlagCompletionFunc("context", command.CompleteContexts(env.Flags.KubeConfig))
	cmd.AddCommand(
		join.NewJoin(env),
		join.NewUnjoin(env),
		kubeconfig.New(env),
		status.New(env),
		status.NewClusters(env),
		ui.New(env),
		transfer.NewExport(env),
		transfer.NewImport(env),
		access.NewGrant(env),
		access.NewCanSee(env),
		upgrade.New(env),
		etcd.New(env),
		backup.New(env),
		restore.New(env),
		recovery.New(env),
		diagnose.New(env),
		report.New(env),
	)
	return cmd
}
