// Package install tells the stories of ClusterRegistries in a real cluster in
// which the operator runs: installed, used, edited, damaged and deleted.
//
// A host has room for one aggregated registry, so those stories run one after the
// other, as do those that stop the operator. The others run side by side.
package install

import (
	"flag"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMain lets all parallel stories run at once: they wait more than they compute. In the
// end it waits for the namespaces of all tests to be gone.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	framework.Main(m)
}
