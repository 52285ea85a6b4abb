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

	"golang.org/x/mod/semver"

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

// Verify returns what is wrong with the table in the work tree: a release that is gone
// since some tag, or that differs, in its entry, in its layout or in what it renders,
// from what it was at a tag at which it was released.
func Verify(ctx context.Context, repository string) error {
	content, err := os.ReadFile(filepath.Join(repository, table))
	if err != nil {
		return err
	}
	now, err := version.Parse(content)
	if err != nil {
		return err
	}
	tags, err := git.Run(ctx, repository, "tag", "--list", "v*")
	if err != nil {
		return err
	}
	var errs []error
	for _, tag := range strings.Fields(tags) {
		if semver.IsValid(tag) {
			errs = append(errs, sameAs(ctx, repository, tag, now))
		}
	}
	return errors.Join(errs...)
}

// sameAs returns how the releases that were released at a tag have changed since.
func sameAs(ctx context.Context, repository, tag string, now []version.Release) error {
	old, err := git.Run(ctx, repository, "show", "refs/tags/"+tag+":"+table)
	if err != nil {
		return fmt.Errorf("the releases at tag %s: %w", tag, err)
	}
	then, err := version.Decode([]byte(old))
	if err != nil {
		return fmt.Errorf("at tag %s: %w", tag, err)
	}
	then = slices.DeleteFunc(then, func(r version.Release) bool { return !r.Released })
	if len(then) == 0 {
		return nil
	}
	errs := []error{compare(tag, then, now), sameRenders(ctx, repository, tag, then)}
	for _, r := range then {
		errs = append(errs, sameLayout(ctx, repository, tag, r))
	}
	return errors.Join(errs...)
}

// sameRenders returns how the digests of what releases render differ from those of
// a tag at which they were released. "make unit" compares them with what is rendered.
func sameRenders(ctx context.Context, repository, tag string, releases []version.Release) error {
	old, err := git.Run(ctx, repository, "show", "refs/tags/"+tag+":"+digests)
	if err != nil {
		return fmt.Errorf("what releases rendered at tag %s: %w", tag, err)
	}
	then, err := version.ParseDigests([]byte(old))
	if err != nil {
		return fmt.Errorf("at tag %s: %w", tag, err)
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
		return fmt.Errorf("%s differs from tag %s: %w", digests, tag, err)
	}
	return nil
}

// sameLayout returns how the layout of a release differs from a tag at which the
// release was released. What it renders shows only what the fixtures use.
func sameLayout(ctx context.Context, repository, tag string, r version.Release) error {
	changed, err := changes(ctx, repository, "refs/tags/"+tag, layouts+"/"+r.Layout)
	if err != nil || changed == "" {
		return err
	}
	return fmt.Errorf("layout %s has changed since tag %s, which has release %s that is rendered from it (%s): undo that, and make the change in a copy of the layout, under a new name, for a new release", r.Layout, tag, r.Version, changed)
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

// compare returns how releases that were released at a tag were changed.
func compare(tag string, then, now []version.Release) error {
	var errs []error
	for _, old := range then {
		i := slices.IndexFunc(now, func(r version.Release) bool { return r.Version == old.Version })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("%s: release %s, which tag %s has, is gone; entries are never removed", table, old.Version, tag))
		case !reflect.DeepEqual(old, now[i]):
			errs = append(errs, fmt.Errorf("%s: release %s differs from what it was when it was released, at tag %s; make a new patch release instead", table, old.Version, tag))
		}
	}
	return errors.Join(errs...)
}
