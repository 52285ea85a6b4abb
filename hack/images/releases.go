package main

import (
	"context"
	"path/filepath"
	"runtime"

	"github.com/clusterregistry/operator/hack/product"
	"github.com/clusterregistry/operator/hack/release"
	"github.com/clusterregistry/operator/operator/version"
)

// releaseImages packs the programs of every release, built from the release's
// own commit.
func releaseImages(ctx context.Context, repository string) ([]product.Image, error) {
	releases, err := version.Releases()
	if err != nil {
		return nil, err
	}
	var all []product.Image
	for _, r := range releases {
		images, err := imagesOf(ctx, repository, r, product.OfRelease())
		if err != nil {
			return nil, err
		}
		all = append(all, images...)
	}
	return all, nil
}

// olderOperatorImage packs the operator that upgrades of the operator begin with,
// built from its own commit.
func olderOperatorImage(ctx context.Context, repository string) ([]product.Image, error) {
	return imagesOf(ctx, repository, release.OlderOperator, []product.Program{product.Operator()})
}

// imagesOf packs programs as they were at the commit of a release.
func imagesOf(ctx context.Context, repository string, r version.Release, programs []product.Program) ([]product.Image, error) {
	binaries, err := filepath.Abs(filepath.Join(out, "programs", r.Version))
	if err != nil {
		return nil, err
	}
	stamp, err := release.Build(ctx, ".", r, programs, map[string]string{runtime.GOARCH: binaries})
	if err != nil {
		return nil, err
	}
	var all []product.Image
	for _, p := range programs {
		b, err := packProgram(repository, p, stamp, binaries)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}
