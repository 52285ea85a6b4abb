// Command clusterregistry-controller acts on what is in a registry: it reports whether
// its clusters are healthy, and registers the host cluster.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/clusterregistry/operator/internal/memlimit"
)

func main() {
	memlimit.Apply()
	info := version.Get()
	o := newOptions()
	cmd := &cobra.Command{
		Use:           "clusterregistry-controller",
		Short:         "Reports of the clusters in a registry, and registers the host cluster.",
		Version:       fmt.Sprintf("%s (commit %s, %s)", info.GitVersion, info.GitCommit, info.GitTreeState),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			logf.SetLogger(klog.Background())
			return o.run(signals.SetupSignalHandler())
		},
	}
	o.addFlags(cmd.Flags())
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
