package main

import (
	"testing"

	"github.com/clusterregistry/operator/internal/flagdoc"
)

func TestFlagsAreDocumented(t *testing.T) {
	for _, cmd := range commands() {
		flagdoc.Check(t, "../../docs/reference/flags.md", "clusterregistry-backup "+cmd.Name(), cmd.Flags())
	}
}
