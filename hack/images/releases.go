package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterregistry/operator/hack/image"
	"github.com/clusterregistry/operator/hack/product"
	"github.com/clusterregistry/operator/hack/release"
	"github.com/clusterregistry/operator/operator/version"
)

// releaseImages packs the programs of every release, built from the release's
// own commit.
func releaseImages(ctx context.Context, repository string) ([]image.Built, error) {
	releases, err := version.Releases()
	if err != nil {
		return nil, err
	}
	var all []image.Built
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
func olderOperatorImage(ctx context.Context, repository string) ([]image.Built, error) {
	return imagesOf(ctx, repository, release.OlderOperator, []product.Program{product.Operator()})
}

// imagesOf packs programs as they were at the commit of a release.
func imagesOf(ctx context.Context, repository string, r version.Release, programs []product.Program) (all []image.Built, err error) {
	commit, err := release.Commit(ctx, ".", r)
	if err != nil {
		return nil, err
	}
	dir, remove, err := release.Checkout(ctx, ".", commit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := complete(dir, programs); err != nil {
		return nil, fmt.Errorf("release %s: commit %s %w; record in operator/version/releases.yaml a commit that has it", r.Version, commit, err)
	}
	stamp, err := product.ReadStamp(ctx, dir)
	if err != nil {
		return nil, err
	}
	stamp.Version = r.Version
	binaries, err := filepath.Abs(filepath.Join(out, "programs", r.Version))
	if err != nil {
		return nil, err
	}
	if err := product.Build(ctx, dir, binaries, stamp, programs...); err != nil {
		return nil, err
	}
	for _, p := range programs {
		b, err := packProgram(repository, p, stamp, binaries)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// complete returns which program's source the checkout in dir lacks.
func complete(dir string, programs []product.Program) error {
	for _, p := range programs {
		_, err := os.Stat(filepath.Join(dir, p.Package))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("has no %s, the source of %s, which belongs to every release", p.Package, p.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
