package version

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// Digests identify what releases are rendered from, and what they render.
type Digests struct {
	// Layouts has the digest of each directory of manifests/registry, by its name.
	Layouts map[string]string `json:"layouts"`
	// Renders has the digest of what a release makes of a fixture, by the release's
	// version and the fixture's name.
	Renders map[string]map[string]string `json:"renders"`
}

// ParseDigests reads digests.
func ParseDigests(content []byte) (Digests, error) {
	var d Digests
	if err := yaml.UnmarshalStrict(content, &d); err != nil {
		return Digests{}, fmt.Errorf("digests of releases: %w", err)
	}
	return d, nil
}

// CheckFrozen returns what has changed, from d to now, of the releases that are
// released, and what to do instead: these keep their layouts and what they render.
// What is not recorded in d may be added. The error is nil when nothing else changed.
func (d Digests) CheckFrozen(now Digests, releases []Release) error {
	var errs []error
	checked := map[string]bool{}
	for _, r := range releases {
		if !r.Released {
			continue
		}
		if was := d.Layouts[r.Layout]; !checked[r.Layout] && was != "" && was != now.Layouts[r.Layout] {
			errs = append(errs, fmt.Errorf("layout %s has changed, and %s, which is released, is rendered from it: undo that, and make the change in a copy of the layout, under a new name, for a new release", r.Layout, r.Version))
		}
		checked[r.Layout] = true
		was, is := d.Renders[r.Version], now.Renders[r.Version]
		for _, fixture := range slices.Sorted(maps.Keys(was)) {
			switch is[fixture] {
			case was[fixture]:
			case "":
				errs = append(errs, fmt.Errorf("fixture %s is gone, which holds %s, which is released, to what it renders: restore it", fixture, r.Version))
			default:
				errs = append(errs, fmt.Errorf("%s is released, and no longer renders fixture %s as it did: undo the change, give it to a new release only, or, if the fixture was changed, add another fixture instead", r.Version, fixture))
			}
		}
	}
	return errors.Join(errs...)
}
