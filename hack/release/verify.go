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

// table is the file of the releases, in the repository.
const table = "operator/version/releases.yaml"

// Verify returns what is wrong with the table in the work tree: a release that
// can't be built, that is gone since some commit, or that differs from what it
// was when it was released.
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
		then, err := version.Parse([]byte(old))
		if err != nil {
			return fmt.Errorf("at commit %s: %w", commit, err)
		}
		errs = append(errs, compare(commit, then, now))
	}
	return errors.Join(errs...)
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
