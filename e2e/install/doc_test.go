// Package install tells the stories of ClusterRegistries in a real cluster in
// which the operator runs: installed, used, edited, damaged and deleted.
//
// A host has room for one aggregated registry, so those stories run one after the
// other, as do those that stop the operator. The others run side by side.
package install

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets all parallel stories run at once: they wait more than they compute.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
