package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/clusterregistry/operator/hack/product"
	"github.com/clusterregistry/operator/hack/release"
	"github.com/clusterregistry/operator/operator/version"
)

// releaseImages packs the server of every release, built from the release's own
// commit.
func releaseImages(ctx context.Context, repository string) ([]built, error) {
	releases, err := version.Releases()
	if err != nil {
		return nil, err
	}
	var all []built
	for _, r := range releases {
		b, err := releaseImage(ctx, repository, r)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

func releaseImage(ctx context.Context, repository string, r version.Release) (b built, err error) {
	commit, err := release.Commit(ctx, ".", r)
	if err != nil {
		return built{}, err
	}
	dir, remove, err := release.Checkout(ctx, ".", commit)
	if err != nil {
		return built{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	stamp, err := product.ReadStamp(ctx, dir)
	if err != nil {
		return built{}, err
	}
	stamp.Version = r.Version
	programs, err := filepath.Abs(filepath.Join(out, "programs", r.Version))
	if err != nil {
		return built{}, err
	}
	server := product.Programs[slices.IndexFunc(product.Programs, func(p product.Program) bool { return p.Name == product.Server })]
	if err := product.Build(ctx, dir, programs, stamp, server); err != nil {
		return built{}, err
	}
	return pack(repository, server.Name, stamp.Version, stamp, []string{"/usr/local/bin/" + server.Name}, filepath.Join(programs, server.Name))
}
