// Command images makes, as archives under bin/images and without a container daemon,
// the operator of the present source, and the images that registries of some releases
// run: what is published is pulled, all else is built.
// bin/images/images.json lists them, those of the present source first.
//
//	images [WORD...]
//
// Words say which releases, and what else: see e2e/framework/needs. None means all.
//
// IMAGE_REPOSITORY is the registry and path before each name; the default exists on
// local clusters only. PUBLISHED=build builds what is published, too.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"

	"github.com/clusterregistry/operator/e2e/framework/needs"
	"github.com/clusterregistry/operator/hack/cluster/image"
	"github.com/clusterregistry/operator/hack/install/render"
	"github.com/clusterregistry/operator/hack/product"
	"github.com/clusterregistry/operator/operator/version"
)

var out = filepath.Dir(product.ImageList)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, words []string) error {
	releases, err := version.Releases()
	if err != nil {
		return err
	}
	wanted, err := needs.Of(releases, words...)
	if err != nil {
		return fmt.Errorf("RELEASES: %w", err)
	}
	published, err := render.PublishedImage(render.Base)
	if err != nil {
		return err
	}
	m := maker{
		repository: cmp.Or(os.Getenv("IMAGE_REPOSITORY"), image.LocalRepository),
		published:  published.Repository,
		releases:   releases,
	}
	switch mode := os.Getenv("PUBLISHED"); mode {
	case "":
	case "build":
		m.published = ""
	default:
		return fmt.Errorf("PUBLISHED is %q; leave it out to pull images that are published, or set it to build to build them, too", mode)
	}
	all, err := m.make(ctx, wanted)
	if err != nil {
		return err
	}
	return report(all)
}

// maker makes images for one repository.
type maker struct {
	repository string
	// published is the repository from which published images are pulled, empty to
	// build them.
	published string
	releases  []version.Release
}

// make makes the operator of the present source, and what else is wanted.
func (m maker) make(ctx context.Context, wanted needs.Needs) ([]product.Image, error) {
	present := []product.Program{product.Operator()}
	if wanted.Source {
		present = product.WithImage()
	}
	all, err := m.source(ctx, present)
	if err != nil {
		return nil, err
	}
	for _, of := range wanted.Images() {
		made, err := m.pulledOrBuilt(ctx, of)
		if err != nil {
			return nil, err
		}
		all = append(all, made)
	}
	if !wanted.OlderOperator {
		return all, nil
	}
	older, err := m.olderOperator(ctx)
	return append(all, older), err
}

// pulledOrBuilt makes an image of a release.
func (m maker) pulledOrBuilt(ctx context.Context, of version.Image) (product.Image, error) {
	if of.Digest != "" && m.published != "" {
		made, err := m.pull(ctx, of)
		if err == nil || ctx.Err() != nil {
			return made, err
		}
		fmt.Printf("it is built, because it can't be pulled: %v\n", err)
	}
	return m.build(ctx, of)
}

// report writes images.json, removes archives of earlier builds and prints the list.
func report(all []product.Image) error {
	archives, err := filepath.Glob(filepath.Join(out, "*.tar"))
	if err != nil {
		return err
	}
	for _, path := range archives {
		if !slices.ContainsFunc(all, func(b product.Image) bool { return b.Archive == path }) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	list, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "images.json"), append(list, '\n'), 0o644); err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, b := range all {
		fmt.Fprintf(table, "%s\t%s\n", b.Reference, b.Digest)
	}
	return table.Flush()
}
