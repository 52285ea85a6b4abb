package main

import (
	"testing"

	"github.com/spf13/pflag"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/clusterregistry/operator/internal/flagdoc"
)

// documented returns the flags that the page has: those of this program. What Kubernetes'
// libraries bring is in kube-apiserver's reference.
func documented(flags *pflag.FlagSet) *pflag.FlagSet {
	inherited := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericoptions.NewRecommendedOptions("", nil).AddFlags(inherited)
	genericoptions.NewServerRunOptions().AddUniversalFlags(inherited)
	logsapi.AddFlags(logsapi.NewLoggingConfiguration(), inherited)
	out := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(flag *pflag.Flag) {
		if inherited.Lookup(flag.Name) == nil {
			out.AddFlag(flag)
		}
	})
	return out
}

func TestFlagsAreDocumented(t *testing.T) {
	cmd, err := command(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	flagdoc.Check(t, "../docs/reference/flags.md", cmd.Name(), documented(cmd.Flags()))
	for _, sub := range cmd.Commands() {
		if sub.Name() == "verify-storage" {
			flagdoc.Described(t, cmd.Name()+" "+sub.Name(), sub.Flags()) // the operator's Jobs set them
		}
	}
}
