// Command platform prepares what "make e2e-olm" runs, in bin/olm: the Operator
// Lifecycle Manager's images and manifests, the bundles of this operator and of
// the one before with the images that "make images" built, catalogs of the first
// one and of both, and what OLM v1 makes of the bundle.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/cluster/image"
	"github.com/clusterregistry/operator/hack/olm/catalog"
)

const (
	out = "bin/olm"
	// kubernetesVersion is what the manifests are rendered for.
	kubernetesVersion = "v1.37.1"
	operator          = "clusterregistry-operator"
)

// Images of the platform, on local clusters only.
var (
	olmImage = image.LocalRepository + "/olm:" + components.OLM.Version
	opmImage = image.LocalRepository + "/opm:" + components.OPM.Version
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cache, err := components.DefaultCache()
	if err != nil {
		return err
	}
	builder := components.Builder{Source: "hack/cluster/components", Cache: cache, Log: os.Stdout}
	olm, err := builder.Ensure(ctx, components.OLM)
	if err != nil {
		return err
	}
	opm, err := builder.Ensure(ctx, components.OPM)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := manifests(ctx, builder, olm); err != nil {
		return err
	}
	bundles, present, err := makeBundles(ctx)
	if err != nil {
		return err
	}
	if err := v1(ctx, bundles[present]); err != nil {
		return err
	}
	specs, err := platformImages(olm, opm)
	if err != nil {
		return err
	}
	older, err := catalog.Older()
	if err != nil {
		return err
	}
	for tag, versions := range map[string][]string{"first": {older}, "second": {older, present}} {
		known := map[string]string{}
		for _, v := range versions {
			known[v] = bundles[v]
		}
		content, err := catalog.Source{OPM: filepath.Join(opm, "opm"), Template: "manifests/olm/catalog.yaml", Bundles: known, Inline: true}.Render(ctx)
		if err != nil {
			return err
		}
		specs = append(specs, catalogImage(specs[1], tag, content))
	}
	_, err = image.WriteArchive(filepath.Join(out, "images.tar"), specs...)
	return err
}

// manifests writes those of OLM.
func manifests(ctx context.Context, builder components.Builder, programs string) error {
	module, err := builder.ModuleDir(ctx, components.OLM, "github.com/operator-framework/operator-lifecycle-manager")
	if err != nil {
		return err
	}
	text, err := catalog.Run(ctx, ".", filepath.Join(programs, "render"), module, olmImage, opmImage, kubernetesVersion)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "olm.yaml"), text, 0o600)
}

// platformImages are those of OLM and of opm, with the programs where their pods
// look for them.
func platformImages(olm, opm string) ([]image.Spec, error) {
	specs := []image.Spec{
		{Reference: olmImage, Entrypoint: []string{"/bin/olm"}, Files: map[string][]byte{"bin/olm": nil, "bin/catalog": nil}},
		{Reference: opmImage, Entrypoint: []string{"/bin/opm"}, Files: map[string][]byte{"bin/opm": nil}},
	}
	for i, dir := range []string{olm, opm} {
		for name := range specs[i].Files {
			content, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
			if err != nil {
				return nil, err
			}
			specs[i].Files[name] = content
		}
	}
	return specs, nil
}

// catalogImage returns opm's image with a catalog that it serves.
func catalogImage(opm image.Spec, tag string, content []byte) image.Spec {
	spec := image.Spec{Reference: image.LocalRepository + "/catalog:" + tag, Entrypoint: []string{"/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-enforce-integrity=false"}, Files: map[string][]byte{"configs/catalog.yaml": content}}
	for name, program := range opm.Files {
		spec.Files[name] = program
	}
	return spec
}
