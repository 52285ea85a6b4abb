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
	// renders has what each release renders, in a folder of its version.
	renders = "operator/render/testdata"
)

// Verify returns what is wrong with the table in the work tree: a release that
// can't be built, that is gone since some commit, or that differs, in its entry or
// in what it renders, from what it was when it was released.
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
		for _, r := range then {
			if r.Released {
				errs = append(errs, sameRender(ctx, repository, commit, r.Version))
			}
		}
	}
	return errors.Join(errs...)
}

// sameRender returns how what a release renders differs from a commit at which
// it was released.
func sameRender(ctx context.Context, repository, commit, release string) error {
	folder := renders + "/" + release
	changed, err := git.Run(ctx, repository, "diff", "--name-only", commit, "--", folder)
	if err != nil {
		return err
	}
	if changed == "" {
		return nil
	}
	return fmt.Errorf("release %s renders something else than when it was released, at commit %s (%s): give the change to a new patch release", release, commit, strings.Join(strings.Fields(changed), ", "))
}

// compare returns how the releases of a commit were changed in a way that is
// not allowed.
func compare(commit string, then, now []version.Release) error {
	var errs []error
	for _, old := range then {
		i := slices.IndexFunc(now, func(r version.Release) bool { return r.Version == old.Version })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("%s: release %s, which commit %s has, is gone; entries are never removed", table, old.Version, commit))
		case old.Released && !reflect.DeepEqual(old, now[i]):
			errs = append(errs, fmt.Errorf("%s: release %s differs from what it was when it was released, at commit %s; make a new patch release instead", table, old.Version, commit))
		}
	}
	return errors.Join(errs...)
}
