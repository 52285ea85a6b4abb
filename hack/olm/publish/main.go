// Command publish writes the catalog that users subscribe to: every version that
// manifests/olm/catalog.yaml lists, each with its bundle as it was made from the
// version's own commit. It refers to the bundles' images, which are pushed with
// the release.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/olm/catalog"
)

func main() {
	out := flag.String("out", "bin/catalog", "folder to write")
	bundle := flag.String("bundle", "bundle", "folder of the present operator's bundle")
	flag.Parse()
	if err := run(context.Background(), *out, *bundle); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out, bundle string) error {
	cache, err := components.DefaultCache()
	if err != nil {
		return err
	}
	opm, err := components.Builder{Source: "hack/cluster/components", Cache: cache, Log: os.Stderr}.Ensure(ctx, components.OPM)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "bundles-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	older, err := catalog.Older()
	if err != nil {
		return err
	}
	if err := catalog.OlderBundle(ctx, filepath.Join(scratch, older)); err != nil {
		return err
	}
	present, err := catalog.Version(bundle)
	if err != nil {
		return err
	}
	content, err := catalog.Source{
		OPM:      filepath.Join(opm, "opm"),
		Template: "manifests/olm/catalog.yaml",
		Bundles:  map[string]string{older: filepath.Join(scratch, older), present: bundle},
	}.Render(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	path := filepath.Join(out, "catalog.yaml")
	fmt.Println(path)
	return os.WriteFile(path, content, 0o644) //nolint:gosec // everybody may read a catalog
}
