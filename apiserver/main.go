// Command clusterregistry-apiserver serves Cluster objects: the list of
// clusters that multi-cluster tools share.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"

	"github.com/clusterregistry/operator/apiserver/server"
	"github.com/clusterregistry/operator/internal/install"
	"github.com/clusterregistry/operator/internal/memlimit"
)

func main() {
	memlimit.Apply()
	memlimit.CollectLess()
	cmd, err := command(genericserver.SetupSignalContext())
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Exit(cli.Run(cmd))
}

func command(ctx context.Context) (*cobra.Command, error) {
	options, err := server.NewOptions()
	if err != nil {
		return nil, err
	}
	logging := logsapi.NewLoggingConfiguration()
	info := version.Get()
	cmd := &cobra.Command{
		Use:          "clusterregistry-apiserver",
		Short:        "Serve the registry of clusters",
		Version:      fmt.Sprintf("%s (commit %s, %s)", info.GitVersion, info.GitCommit, info.GitTreeState),
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			if err := logsapi.ValidateAndApply(logging, nil); err != nil {
				return err
			}
			// Before anything goes by a feature gate.
			if err := compatibility.DefaultComponentGlobalsRegistry.Set(); err != nil {
				return err
			}
			if err := options.Validate(); err != nil {
				return err
			}
			config, err := options.Config(ctx)
			if err != nil {
				return err
			}
			s, err := config.Complete().New()
			if err != nil {
				return err
			}
			return s.PrepareRun().RunWithContext(ctx)
		},
	}
	options.AddFlags(cmd.Flags())
	logsapi.AddFlags(logging, cmd.Flags())
	logs.InitLogs()
	verify, err := verifyStorage(ctx)
	if err != nil {
		return nil, err
	}
	cmd.AddCommand(install.Command(cmd.Name()), verify)
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd, nil
}
