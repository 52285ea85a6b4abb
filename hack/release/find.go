// Package release builds the registry's releases from this repository's own
// history, that of branches and tags included, and keeps what was released from
// changing.
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

// Commit returns the commit that a release is built from: the recorded one, else the
// newest with the recorded tree. It is looked for in the history of HEAD, then in
// that of every ref of this clone, and at last, when the table names a ref, in what
// the remote has there, which is fetched for that.
func Commit(ctx context.Context, repository string, r version.Release) (string, error) {
	for _, refs := range []string{"HEAD", "--all"} {
		if commit, err := in(ctx, repository, r, refs); commit != "" || err != nil {
			return commit, err
		}
	}
	missing := fmt.Errorf("release %s: neither commit %s nor a commit with tree %s is in the history of any branch or tag of this clone", r.Version, r.Commit, r.Tree)
	if r.Ref == "" {
		return "", fmt.Errorf("%w; fetch the whole history (git fetch --unshallow) and the branch or tag that it is on, or name that as \"ref\" in operator/version/releases.yaml", missing)
	}
	fetched := keptRefs + r.Version
	if _, err := git.Run(ctx, repository, "fetch", "--quiet", "--no-tags", remote, "+"+r.Ref+":"+fetched); err != nil {
		return "", fmt.Errorf("%w, and its ref %s can't be fetched: %w", missing, r.Ref, err)
	}
	commit, err := in(ctx, repository, r, fetched)
	if err == nil && commit == "" {
		err = fmt.Errorf("%w, nor in that of %s at remote %s; correct operator/version/releases.yaml", missing, r.Ref, remote)
	}
	return commit, err
}

const (
	// remote is where refs that the table names are fetched from.
	remote = "origin"
	// keptRefs is where what was fetched is kept, by the release's version.
	keptRefs = "refs/clusterregistry/"
)

// in returns the commit of a release in the history of refs, an argument of "git
// log", and an empty one when it is not there.
func in(ctx context.Context, repository string, r version.Release, refs string) (string, error) {
	log, err := git.Run(ctx, repository, "log", "--format=%H %T", refs, "--")
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
	return byTree, nil
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
