package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/clusterregistry/operator/hack/cluster/image"
	"github.com/clusterregistry/operator/hack/olm/catalog"
	"github.com/clusterregistry/operator/hack/product"
)

// makeBundles writes the bundles of the two operators, with the images of the
// local cluster, and returns their folders by version, and the present version.
func makeBundles(ctx context.Context) (bundles map[string]string, present string, err error) {
	here, err := product.FindImage(product.ImageList, operator)
	if err != nil {
		return nil, "", err
	}
	if present, err = catalog.Version("bundle"); err != nil {
		return nil, "", err
	}
	older, err := catalog.Older()
	if err != nil {
		return nil, "", err
	}
	bundles = map[string]string{older: filepath.Join(out, "bundle-"+older), present: filepath.Join(out, "bundle-"+present)}
	if err := catalog.OlderBundle(ctx, bundles[older], "-repository="+image.LocalRepository); err != nil {
		return nil, "", err
	}
	return bundles, present, catalog.Bundle(ctx, "-image="+here.Reference, "-out="+bundles[present], "-repository="+image.LocalRepository)
}

// v1 writes what OLM v1 makes of a bundle.
func v1(ctx context.Context, bundle string) error {
	dir, err := filepath.Abs(bundle)
	if err != nil {
		return err
	}
	text, err := catalog.Run(ctx, "hack/olm/v1", "go", "run", ".", dir, "clusterregistry-system")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "v1.yaml"), text, 0o600)
}
