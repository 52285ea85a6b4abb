// Command build compiles the project's programs into bin, or the named directory; with
// names after that, these programs alone:
//
//	build [DIRECTORY [PROGRAM...]]
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/clusterregistry/operator/hack/product"
)

func main() {
	out := "bin"
	if len(os.Args) > 1 {
		out = os.Args[1]
	}
	if err := run(context.Background(), out, os.Args[min(2, len(os.Args)):]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, names []string) error {
	programs := product.Programs
	if len(names) > 0 {
		programs = nil
		for _, name := range names {
			i := slices.IndexFunc(product.Programs, func(p product.Program) bool { return p.Name == name })
			if i < 0 {
				return fmt.Errorf("there is no program %q; hack/product lists them", name)
			}
			programs = append(programs, product.Programs[i])
		}
	}
	stamp, err := product.ReadStamp(ctx, ".")
	if err != nil {
		return err
	}
	if err := product.Build(ctx, ".", out, runtime.GOARCH, stamp, programs...); err != nil {
		return err
	}
	fmt.Printf("%s is in %s\n", stamp.Version, out)
	return nil
}
