// Package release builds the registry's releases from this repository's own
// history, and keeps what was released from changing.
package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/clusterregistry/operator/hack/git"
	"github.com/clusterregistry/operator/operator/version"
)

// OlderOperator is the version of the operator that its own upgrade is tested
// from: the last one that knew one release of the registry and no upgrade.
var OlderOperator = version.Release{Version: "v0.1.0", Commit: "04e0ab1da32d06c90a83db67df15d7233364b139", Tree: "b8c73aaf87f332dbe5c2619a6ca9e22c6ad831c3"}

// Commit returns the commit in the history of HEAD that a release is built
// from: the recorded one, else the newest with the recorded tree.
func Commit(ctx context.Context, repository string, r version.Release) (string, error) {
	log, err := git.Run(ctx, repository, "log", "--format=%H %T")
	if err != nil {
		return "", err
	}
	byTree := ""
	for line := range strings.Lines(log) {
		commit, tree, _ := strings.Cut(strings.TrimSpace(line), " ")
		if commit == r.Commit {
			if tree != r.Tree {
				return "", fmt.Errorf("release %s: commit %s has tree %s, but tree %s is recorded; correct operator/version/releases.yaml", r.Version, commit, tree, r.Tree)
			}
			return commit, nil
		}
		if tree == r.Tree && byTree == "" {
			byTree = commit
		}
	}
	if byTree != "" {
		return byTree, nil
	}
	return "", fmt.Errorf("release %s: neither commit %s nor a commit with tree %s is in the history of this clone; fetch the whole history (git fetch --unshallow)", r.Version, r.Commit, r.Tree)
}

// Checkout lays out a commit in a folder of its own. The function that is
// returned removes it.
func Checkout(ctx context.Context, repository, commit string) (dir string, remove func() error, err error) {
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
