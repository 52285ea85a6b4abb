package main

import (
	"testing"

	"github.com/clusterregistry/operator/internal/flagdoc"
)

func TestFlagsAreDocumented(t *testing.T) {
	cmd, err := command(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	flagdoc.Check(t, "../docs/reference/flags.md", cmd.Name(), cmd.Flags())
	for _, sub := range cmd.Commands() {
		if sub.Name() == "verify-storage" {
			flagdoc.Check(t, "../docs/reference/flags.md", cmd.Name()+" "+sub.Name(), sub.Flags())
		}
	}
}
