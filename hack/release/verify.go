package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/hack/git"
	"github.com/clusterregistry/operator/operator/version"
)

const (
	// table is the file of the releases, in the repository.
	table = "operator/version/releases.yaml"
	// digests is the file of the digests of what each release renders.
	digests = "operator/render/testdata/digests.yaml"
	// layouts has the manifests that releases are rendered from, each in a directory
	// of its name.
	layouts = "manifests/registry"
)

// Verify returns what is wrong with the table in the work tree: a release that
// can't be built, that is gone since some commit, or that differs, in its entry,
// in its layout or in what it renders, from what it was when it was released.
func Verify(ctx context.Context, repository string) error {
	content, err := os.ReadFile(filepath.Join(repository, table))
	if err != nil {
		return err
	}
	now, err := version.Parse(content)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range now {
		if _, err := Commit(ctx, repository, r); err != nil {
			errs = append(errs, err)
		}
	}
	log, err := git.Run(ctx, repository, "log", "--reverse", "--format=%H", "--", table)
	if err != nil {
		return err
	}
	for _, commit := range strings.Fields(log) {
		old, err := git.Run(ctx, repository, "show", commit+":"+table)
		if err != nil {
			return err
		}
		then, err := version.Decode([]byte(old))
		if err != nil {
			return fmt.Errorf("at commit %s: %w", commit, err)
		}
		errs = append(errs, compare(commit, then, now))
		if !slices.ContainsFunc(then, func(r version.Release) bool { return r.Released }) {
			continue
		}
		errs = append(errs, sameRenders(ctx, repository, commit, then))
		for _, r := range then {
			if r.Released {
				errs = append(errs, sameLayout(ctx, repository, commit, r))
			}
		}
	}
	return errors.Join(errs...)
}

// sameRenders returns how the digests of what releases render differ from those of
// a commit at which some of them were released. "make unit" compares them with what
// is rendered.
func sameRenders(ctx context.Context, repository, commit string, releases []version.Release) error {
	old, err := git.Run(ctx, repository, "show", commit+":"+digests)
	if err != nil {
		return fmt.Errorf("what releases rendered when they were released: %w", err)
	}
	then, err := version.ParseDigests([]byte(old))
	if err != nil {
		return fmt.Errorf("at commit %s: %w", commit, err)
	}
	content, err := os.ReadFile(filepath.Join(repository, digests))
	if err != nil {
		return err
	}
	now, err := version.ParseDigests(content)
	if err != nil {
		return fmt.Errorf("%s: %w", digests, err)
	}
	if err := then.CheckFrozen(now, releases); err != nil {
		return fmt.Errorf("%s differs from commit %s: %w", digests, commit, err)
	}
	return nil
}

// sameLayout returns how the layout of a release differs from a commit at which
// the release was released. What it renders shows only what the fixtures use.
func sameLayout(ctx context.Context, repository, commit string, r version.Release) error {
	changed, err := changes(ctx, repository, commit, layouts+"/"+r.Layout)
	if err != nil || changed == "" {
		return err
	}
	return fmt.Errorf("layout %s has changed since release %s, which is rendered from it, was released at commit %s (%s): undo that, and make the change in a copy of the layout, under a new name, for a new release", r.Layout, r.Version, commit, changed)
}

// changes returns the files of a directory that differ from a commit, new ones
// that git does not know yet included.
func changes(ctx context.Context, repository, commit, directory string) (string, error) {
	changed, err := git.Run(ctx, repository, "diff", "--name-only", commit, "--", directory)
	if err != nil {
		return "", err
	}
	added, err := git.Run(ctx, repository, "ls-files", "--others", "--exclude-standard", "--", directory)
	if err != nil {
		return "", err
	}
	return strings.Join(append(strings.Fields(changed), strings.Fields(added)...), ", "), nil
}

// compare returns how the releases of a commit were changed in a way that is
// not allowed. Where a released one is fetched from may change: its commit may not.
func compare(commit string, then, now []version.Release) error {
	var errs []error
	for _, old := range then {
		i := slices.IndexFunc(now, func(r version.Release) bool { return r.Version == old.Version })
		if i >= 0 {
			old.Ref = now[i].Ref
		}
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("%s: release %s, which commit %s has, is gone; entries are never removed", table, old.Version, commit))
		case old.Released && !reflect.DeepEqual(old, now[i]):
			errs = append(errs, fmt.Errorf("%s: release %s differs from what it was when it was released, at commit %s; make a new patch release instead", table, old.Version, commit))
		}
	}
	return errors.Join(errs...)
}
