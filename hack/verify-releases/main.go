// Command verify-releases fails when a release of the registry was changed
// after it was released, or can't be built from the history.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/clusterregistry/operator/hack/release"
)

func main() {
	if err := release.Verify(context.Background(), "."); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
