package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/internal/flagdoc"
)

// TestFlagsAreDescribed is about flags that --help alone lists: no one but the operator sets them.
func TestFlagsAreDescribed(t *testing.T) {
	for name, cmd := range map[string]*cobra.Command{
		"clusterregistry-helper etcd-guard":    etcdGuard(),
		"clusterregistry-helper etcd-restore":  etcdRestore(),
		"clusterregistry-helper snapshot save": save(),
		"clusterregistry-helper snapshot keep": keep(),
	} {
		flagdoc.Described(t, name, cmd.Flags())
	}
}
