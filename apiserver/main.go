// Command clusterregistry-apiserver serves Cluster objects: the list of clusters that multi-cluster tools share.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"
)

func main() {
	info := version.Get()
	cmd := &cobra.Command{
		Use:           "clusterregistry-apiserver",
		Version:       fmt.Sprintf("%s (commit %s, %s)", info.GitVersion, info.GitCommit, info.GitTreeState),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("this build is a skeleton that knows only --version")
		},
	}
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
