package main

import (
	"testing"

	"github.com/clusterregistry/operator/internal/flagdoc"
)

// TestFlagsAreDescribed is about flags that --help alone lists: no one but the operator sets them.
func TestFlagsAreDescribed(t *testing.T) {
	for _, cmd := range commands() {
		flagdoc.Described(t, "clusterregistry-backup "+cmd.Name(), cmd.Flags())
	}
}
