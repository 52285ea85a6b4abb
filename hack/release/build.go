package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterregistry/operator/hack/product"
	"github.com/clusterregistry/operator/operator/version"
)

// Build compiles programs as they were at the commit of a release. The key of
// out is an architecture, its value the absolute path of the folder for the
// programs of that architecture.
func Build(ctx context.Context, repository string, r version.Release, programs []product.Program, out map[string]string) (stamp product.Stamp, err error) {
	commit, err := Commit(ctx, repository, r)
	if err != nil {
		return product.Stamp{}, err
	}
	dir, remove, err := Checkout(ctx, repository, commit)
	if err != nil {
		return product.Stamp{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := complete(dir, programs); err != nil {
		return product.Stamp{}, fmt.Errorf("release %s: commit %s %w; record in operator/version/releases.yaml a commit that has it", r.Version, commit, err)
	}
	stamp, err = product.ReadStamp(ctx, dir)
	if err != nil {
		return product.Stamp{}, err
	}
	stamp.Version = r.Version
	for arch, binaries := range out {
		if err := product.Build(ctx, dir, binaries, arch, stamp, programs...); err != nil {
			return product.Stamp{}, fmt.Errorf("release %s: %w", r.Version, err)
		}
	}
	return stamp, nil
}

// complete returns which program's source the checkout in dir lacks.
func complete(dir string, programs []product.Program) error {
	for _, p := range programs {
		_, err := os.Stat(filepath.Join(dir, p.Package))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("has no %s, the source of %s, which belongs to the release", p.Package, p.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
