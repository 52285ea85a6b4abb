package main

import (
	"flag"
	"fmt"

	"github.com/spf13/cobra"
	// Signs in to registries as kubectl does: with exec plugins and OIDC.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

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
	pluginversion "github.com/clusterregistry/operator/cli/version"
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
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: defaultName},
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
	logs := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logs)
	logs.Lookup("v").Usage = "what is logged of requests, by its `level`: 6 each with its result and time, 8 with its content"
	cmd.PersistentFlags().AddGoFlag(logs.Lookup("v"))
	_ = cmd.RegisterFlagCompletionFunc("context", command.CompleteContexts(env.Flags.KubeConfig))
	for _, g := range groups(env) {
		cmd.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, below := range g.commands {
			below.GroupID = g.title
			cmd.AddCommand(below)
		}
	}
	cmd.AddCommand(pluginversion.New(env, info))
	return cmd
}

// group are commands that the help shows under one title.
type group struct {
	title    string
	commands []*cobra.Command
}

func groups(env *command.Env) []group {
	return []group{
		{"See the fleet", []*cobra.Command{status.New(env), status.NewClusters(env), ui.New(env)}},
		{"Register and use clusters", []*cobra.Command{join.NewJoin(env), join.NewUnjoin(env), transfer.NewImport(env), transfer.NewExport(env), kubeconfig.New(env)}},
		{"Manage access", []*cobra.Command{access.NewGrant(env), access.NewCanSee(env)}},
		{"Operate registries", []*cobra.Command{upgrade.New(env), etcd.New(env), backup.New(env), restore.New(env), recovery.New(env)}},
		{"Troubleshoot", []*cobra.Command{diagnose.New(env), report.New(env)}},
	}
}
