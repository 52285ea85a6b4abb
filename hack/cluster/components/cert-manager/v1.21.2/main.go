// Command cert-manager is cert-manager v1.21.2 for the local cluster, as one
// binary with a subcommand for each of its three components. cert-manager's
// module on the proxy holds their packages but not their mains.
//
// Flags of the Helm chart that have no meaning here (leader election with one
// replica, ACME) are accepted and ignored, so that the chart's own Deployments
// run unchanged.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	components := map[string]func(context.Context, []string) error{
		"controller": runController,
		"cainjector": runCAInjector,
		"webhook":    runWebhook,
	}
	if len(os.Args) < 2 || components[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: cert-manager controller|cainjector|webhook [flags]")
		os.Exit(2)
	}
	ctrl.SetLogger(klog.Background())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := components[os.Args[1]](ctx, os.Args[2:]); err != nil {
		klog.Background().Error(err, "stopped", "component", os.Args[1])
		os.Exit(1)
	}
}

// tolerant returns a flag set that skips the flags it does not define.
func tolerant(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.ParseErrorsAllowlist.UnknownFlags = true
	return fs
}
