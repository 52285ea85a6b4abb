package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/internal/flagdoc"
)

func TestFlagsAreDocumented(t *testing.T) {
	for name, cmd := range map[string]*cobra.Command{
		"clusterregistry-helper etcd-guard":    etcdGuard(),
		"clusterregistry-helper etcd-restore":  etcdRestore(),
		"clusterregistry-helper snapshot save": save(),
		"clusterregistry-helper snapshot keep": keep(),
	} {
		flagdoc.Check(t, "../docs/reference/flags.md", name, cmd.Flags())
	}
}
