package main

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/clusterregistry/operator/internal/flagdoc"
)

func TestFlagsAreDocumented(t *testing.T) {
	t.Setenv("IMAGE_REPOSITORY", "")
	t.Setenv("AGGREGATED_NAMESPACES", "")
	o := newOptions()
	o.environment.ClusterDomain = "cluster.local" // not this computer's
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(flags)
	flagdoc.Check(t, "../docs/reference/flags.md", "clusterregistry-operator", flags)
}
