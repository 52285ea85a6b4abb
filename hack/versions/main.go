// Command versions writes what follows from operator/version/releases.yaml: the
// type of spec.version of a ClusterRegistry ("versions type"), which comes before
// the CustomResourceDefinition is generated; the rule in that definition about
// changes of the version ("versions crd"); and the tables in docs ("versions docs").
package main

import (
	"fmt"
	"os"

	"github.com/clusterregistry/operator/operator/version"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	releases, err := version.Releases()
	if err != nil {
		return err
	}
	writes := map[string]func([]version.Release) error{"type": writeType, "crd": writeRule, "docs": writeTable}
	if len(args) != 1 || writes[args[0]] == nil {
		return fmt.Errorf("usage: versions type|crd|docs")
	}
	return writes[args[0]](releases)
}
