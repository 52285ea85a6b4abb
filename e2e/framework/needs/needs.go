// Package needs says which releases of the registry, and what else of this
// repository, someone runs: the tests of a package, or who types it. Images are built
// by it, and tests are held to it.
package needs

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/operator/version"
)

// Needs is what someone runs.
type Needs struct {
	// Releases are the releases of the registry, oldest first.
	Releases []version.Release
	// Source is true for servers and helper of the present source.
	Source bool
	// OlderOperator is true for the operator that upgrades of the operator begin with.
	OlderOperator bool
	// S3 is true for a store with the API of S3.
	S3 bool

	// newest is the newest release that there is.
	newest version.Release
}

//go:embed needs.yaml
var packages []byte

// prefix is what words begin with that stand for the tests of a package.
const prefix = "e2e/"

// Of returns what words name: those of needs.yaml, or "e2e/faults" for what the tests
// of that package run. No word means all.
func Of(releases []version.Release, words ...string) (Needs, error) {
	var declared map[string][]string
	if err := yaml.UnmarshalStrict(packages, &declared); err != nil {
		return Needs{}, fmt.Errorf("needs.yaml: %w", err)
	}
	if len(releases) == 0 {
		return Needs{}, errors.New("there is no release")
	}
	if len(words) == 0 {
		words = []string{"all"}
	}
	n := Needs{newest: releases[len(releases)-1]}
	named := map[string]bool{}
	var errs []error
	for _, word := range expand(declared, words) {
		switch word {
		case "all":
			n.Source, n.OlderOperator, n.S3 = true, true, true
			for _, r := range releases {
				named[r.Version] = true
			}
		case "newest":
			named[n.newest.Version] = true
		case "oldest":
			named[releases[0].Version] = true
		case "source":
			n.Source = true
		case "older-operator":
			n.OlderOperator = true
		case "s3":
			n.S3 = true
		default:
			_, err := version.Find(releases, word)
			errs = append(errs, err)
			named[word] = true
		}
	}
	for _, r := range releases {
		if named[r.Version] {
			n.Releases = append(n.Releases, r)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Needs{}, fmt.Errorf("%w; besides versions there are newest, oldest, source, older-operator, s3, all, and e2e/PACKAGE for what the tests of a package run", err)
	}
	return n, nil
}

// expand returns words with those that the packages have in place of packages.
func expand(declared map[string][]string, words []string) []string {
	var out []string
	for _, word := range words {
		name, is := strings.CutPrefix(word, prefix)
		of, known := declared[name]
		switch {
		case !is:
			out = append(out, word)
		case known:
			out = append(out, of...)
		default:
			out = append(out, "all")
		}
	}
	return out
}

// Has reports whether a release is one of those.
func (n Needs) Has(release string) bool {
	return slices.ContainsFunc(n.Releases, func(r version.Release) bool { return r.Version == release })
}

// S3Server is the image of the store with the API of S3, which is built of its module.
var S3Server = version.Image{Name: "versitygw", Tag: "v1.7.0"}

// Images returns the images that registries of these releases run, each once, by
// name and, within one, from the oldest to the newest tag; the etcd for servers of
// the present source; and the S3 store.
func (n Needs) Images() []version.Image {
	all := map[string]version.Image{}
	add := func(image version.Image) {
		// A release that is not published runs images of one that is.
		if name := image.Name + ":" + image.Tag; image.Digest != "" || all[name].Name == "" {
			all[name] = image
		}
	}
	for _, r := range n.Releases {
		for _, image := range r.Runs() {
			add(image)
		}
	}
	if n.Source {
		for _, image := range n.newest.Runs() {
			if image.Name == "etcd" {
				add(image)
			}
		}
	}
	if n.S3 {
		add(S3Server)
	}
	return slices.SortedFunc(maps.Values(all), func(a, b version.Image) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		return semver.Compare(a.Tag, b.Tag)
	})
}

// String names what it is in the words of Of.
func (n Needs) String() string {
	var words []string
	for _, r := range n.Releases {
		words = append(words, r.Version)
	}
	if n.Source {
		words = append(words, "source")
	}
	if n.OlderOperator {
		words = append(words, "older-operator")
	}
	if n.S3 {
		words = append(words, "s3")
	}
	return strings.Join(words, " ")
}
