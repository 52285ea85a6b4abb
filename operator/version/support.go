package version

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// supportedMinors is how many minor releases are supported: the newest ones, with
// all of their patch releases.
const supportedMinors = 3

// CheckSupport returns nil when a registry may run a release for good, and else an
// error that wraps ErrSupport and says what to set spec.version to: of one that runs
// it already, the way out; of one that is to be installed, the newest release. As a
// step of an upgrade every release may be run.
func CheckSupport(releases []Release, release string, runs bool) error {
	if supported(releases, release) {
		return nil
	}
	const sentence = "%s is no longer supported, only the last %d minor releases are: "
	if !runs {
		return &problem{ErrSupport, fmt.Sprintf(sentence+"set spec.version to %s, the newest", release, supportedMinors, newestReleased(releases))}
	}
	way := Path(releases, release, newestReleased(releases))
	if i := slices.IndexFunc(way, func(step string) bool { return supported(releases, step) }); i >= 0 {
		way = way[:i+1]
	}
	switch len(way) {
	case 0:
		return &problem{ErrSupport, fmt.Sprintf(sentence+"no upgrade leads from it to one of them, so create another registry and copy the clusters", release, supportedMinors)}
	case 1:
		return &problem{ErrSupport, fmt.Sprintf(sentence+"set spec.version to %s", release, supportedMinors, way[0])}
	}
	return &problem{ErrSupport, fmt.Sprintf(sentence+"set spec.version to %s first, and then to %s", release, supportedMinors, way[0], strings.Join(way[1:], " and "))}
}

// supported reports whether a release is one of the newest minor releases, or newer.
// Only releases that are released count as such, so none leaves for one that users
// can't have yet.
func supported(releases []Release, release string) bool {
	var minors []string
	for _, r := range releases {
		if m := semver.MajorMinor(r.Version); final(r) && !slices.Contains(minors, m) {
			minors = append(minors, m)
		}
	}
	return len(minors) <= supportedMinors || semver.Compare(semver.MajorMinor(release), minors[len(minors)-supportedMinors]) >= 0
}

// final reports whether users have a release, and not only one before it.
func final(r Release) bool { return r.Released && semver.Prerelease(r.Version) == "" }

// newestReleased returns the version of the newest release that users have.
func newestReleased(releases []Release) string {
	newest := ""
	for _, r := range releases {
		if final(r) {
			newest = r.Version
		}
	}
	return newest
}
