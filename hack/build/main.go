// Command build compiles the project's programs into bin, or the named folder.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/clusterregistry/operator/hack/product"
)

func main() {
	out := "bin"
	if len(os.Args) > 1 {
		out = os.Args[1]
	}
	if err := run(context.Background(), out); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string) error {
	stamp, err := product.ReadStamp(ctx, ".")
	if err != nil {
		return err
	}
	if err := product.Build(ctx, ".", out, runtime.GOARCH, stamp, product.Programs...); err != nil {
		return err
	}
	fmt.Printf("%s is in %s\n", stamp.Version, out)
	return nil
}
