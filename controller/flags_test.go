package main

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/clusterregistry/operator/internal/flagdoc"
)

func TestFlagsAreDocumented(t *testing.T) {
	flags := pflag.NewFlagSet("clusterregistry-controller", pflag.ContinueOnError)
	(&options{}).addFlags(flags)
	flagdoc.Check(t, "../docs/reference/flags.md", "clusterregistry-controller", flags)
}
