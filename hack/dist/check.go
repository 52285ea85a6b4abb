package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/clusterregistry/operator/hack/git"
	"github.com/clusterregistry/operator/hack/install/render"
	"github.com/clusterregistry/operator/operator/version"
)

// wellFormed returns an error unless a version can be that of a release.
func wellFormed(v string) error {
	if v == "" {
		return errors.New("no version is given; say make release VERSION=v0.2.0")
	}
	if semver.Canonical(v) != v {
		return fmt.Errorf("%q is no version of a release; it must be like v0.2.0 or v0.2.0-rc.1: a v, three numbers, and no build metadata", v)
	}
	return nil
}

// releasable returns all that is missing in a checkout to release it as the given
// version, for whom the manifests name an image.
func releasable(ctx context.Context, repository, v string, published render.Image) error {
	errs := []error{untagged(ctx, repository, v)}
	changes, err := git.Run(ctx, repository, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		errs = append(errs, fmt.Errorf("the work tree differs from the commit; commit or stash this first:\n%s", changes))
	}
	if want := published.Repository + "/clusterregistry-operator:" + v; published.Reference != want {
		errs = append(errs, fmt.Errorf("%s installs %s, not %s; set newTag in its kustomization.yaml", render.Base, published.Reference, want))
	}
	changelog, err := os.ReadFile(filepath.Join(repository, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(slices.Collect(bytes.Lines(changelog)), func(line []byte) bool {
		return strings.HasPrefix(string(line)+" ", "## "+v+" ") || strings.TrimSpace(string(line)) == "## "+v
	}) {
		errs = append(errs, fmt.Errorf("CHANGELOG.md has no section %q; rename \"%[1]s, unreleased\"", "## "+v))
	}
	return errors.Join(append(errs, inCatalog(repository, v), requireThis(repository, v), allReleased(repository))...)
}

// inCatalog returns an error when OLM would not be told of a version: the catalog
// lists what its template does.
func inCatalog(repository, v string) error {
	const template = "manifests/olm/catalog.yaml"
	content, err := os.ReadFile(filepath.Join(repository, template))
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(content)), "clusterregistry-operator."+v) {
		return fmt.Errorf("%s does not list clusterregistry-operator.%s; add it to both channels, and its bundle", template, v)
	}
	return nil
}

// untagged returns an error when a version is the tag of another commit.
func untagged(ctx context.Context, repository, v string) error {
	tags, err := git.Run(ctx, repository, "tag", "--list", v)
	if err != nil || tags == "" {
		return err
	}
	here, err := git.Run(ctx, repository, "tag", "--points-at", "HEAD", "--list", v)
	if err != nil || here != "" {
		return err // the same release once more, to compare it
	}
	return fmt.Errorf("%s exists already, at another commit; choose the next version, or check out %[1]s to make it once more", v)
}

// allReleased returns which registries an operator would install that may change
// yet.
func allReleased(repository string) error {
	const table = "operator/version/releases.yaml"
	content, err := os.ReadFile(filepath.Join(repository, table))
	if err != nil {
		return err
	}
	releases, err := version.Parse(content)
	if err != nil {
		return err
	}
	var open []string
	for _, r := range releases {
		if !r.Released {
			open = append(open, r.Version)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%s: %s may change yet; set released to true, which is for good", table, strings.Join(open, ", "))
	}
	return nil
}
