// Package version knows the registry's releases: what each speaks and stores, and
// what it runs with. releases.yaml is the only source
// of these facts. The package decides by pure functions and has no client.
package version

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

//go:embed releases.yaml
var table []byte

// Releases returns all releases, oldest first.
func Releases() ([]Release, error) { return Parse(table) }

// Decode reads a table of releases, whatever it says: that of an earlier commit
// lacks what was added since.
func Decode(content []byte) ([]Release, error) {
	var file struct {
		Releases []Release `json:"releases"`
	}
	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		return nil, fmt.Errorf("releases.yaml: %w", err)
	}
	for i, r := range file.Releases {
		file.Releases[i].Members = r.own()
	}
	return file.Releases, nil
}

// Parse reads a table of releases and returns everything that is wrong with it.
func Parse(content []byte) ([]Release, error) {
	releases, err := Decode(content)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i, r := range releases {
		if err := r.validate(); err != nil {
			errs = append(errs, fmt.Errorf("releases.yaml: entry %d (%s): %w", i, r.Version, err))
		}
		for _, other := range append(slices.Clone(r.UpgradesFrom), r.Helper) {
			if other != r.Version && !slices.ContainsFunc(releases[:i], func(o Release) bool { return o.Version == other }) {
				errs = append(errs, fmt.Errorf("releases.yaml: entry %d (%s): it names %q, which is not an earlier release", i, r.Version, other))
			}
		}
		if i > 0 && semver.Compare(releases[i-1].Version, r.Version) >= 0 {
			errs = append(errs, fmt.Errorf("releases.yaml: %s comes after %s; list the oldest first, each once", r.Version, releases[i-1].Version))
		}
	}
	return releases, errors.Join(append(errs, sameImages(releases))...)
}

var (
	minor = regexp.MustCompile(`^1\.[0-9]+$`)
	// layout is the name of a directory.
	layout = regexp.MustCompile(`^v[1-9][0-9]*$`)
)

func (r Release) validate() error {
	var errs []error
	if semver.Canonical(r.Version) != r.Version {
		errs = append(errs, fmt.Errorf("version %q is not a semantic version such as v0.1.0", r.Version))
	}
	if semver.Canonical(r.Etcd) != r.Etcd {
		errs = append(errs, fmt.Errorf("etcd %q is not a version such as v3.6.14", r.Etcd))
	}
	if err := r.validateImages(); err != nil {
		errs = append(errs, err)
	}
	if !layout.MatchString(r.Layout) {
		errs = append(errs, fmt.Errorf("layout %q is not a name such as v1", r.Layout))
	}
	if slices.Contains(r.UpgradesFrom, r.Version) {
		errs = append(errs, errors.New("it upgrades from itself"))
	}
	if len(r.Serves) == 0 {
		errs = append(errs, errors.New("serves is empty"))
	}
	if !slices.Contains(r.Reads, r.Stores) {
		errs = append(errs, fmt.Errorf("it stores %q but does not read it", r.Stores))
	}
	for name, value := range map[string]Range{"host": r.Host, "kubectl": r.Kubectl} {
		if !minor.MatchString(value.From) || !minor.MatchString(value.To) || semver.Compare("v"+value.From, "v"+value.To) > 0 {
			errs = append(errs, fmt.Errorf("%s from %q to %q is not a range of minor versions such as 1.34", name, value.From, value.To))
		}
	}
	return errors.Join(errs...)
}
