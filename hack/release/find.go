// Package release finds the source of the registry's releases, and keeps what was
// released from changing.
package release

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/clusterregistry/operator/hack/git"
	"github.com/clusterregistry/operator/operator/version"
)

// Source lays out what a release is built from: the repository's own work tree as long
// as it is not released, and its tag in a directory of its own afterwards. The newest
// one has no tag yet while it is being released. The function that is returned removes
// what was laid out.
func Source(ctx context.Context, repository string, releases []version.Release, r version.Release) (dir string, remove func() error, err error) {
	here := func() error { return nil }
	if !r.Released {
		return repository, here, nil
	}
	tag, err := git.Run(ctx, repository, "tag", "--list", r.Version)
	if err != nil {
		return "", nil, err
	}
	switch {
	case tag != "":
		return checkout(ctx, repository, "refs/tags/"+r.Version)
	case r.Version == releases[len(releases)-1].Version:
		return repository, here, nil
	}
	return "", nil, fmt.Errorf("release %s is built from its tag, which this clone does not have; fetch the tags: git fetch --tags", r.Version)
}

// checkout lays out a commit in a directory of its own, which the function that is
// returned removes.
func checkout(ctx context.Context, repository, commit string) (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", "release-")
	if err != nil {
		return "", nil, err
	}
	if _, err := git.Run(ctx, repository, "worktree", "add", "--force", "--detach", dir, commit); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() error {
		_, err := git.Run(context.WithoutCancel(ctx), repository, "worktree", "remove", "--force", dir)
		return err
	}, nil
}
