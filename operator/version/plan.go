package version

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// Why a release can't run. Errors of this package wrap them.
var (
	// ErrUnknown is about a release that is not in the table.
	ErrUnknown = errors.New("unknown version")
	// ErrHost is about a host that the release was never tested with.
	ErrHost = errors.New("unsupported host")
	// ErrUpgrade is about a release that can't be reached from the one that runs.
	ErrUpgrade = errors.New("unsupported upgrade")
	// ErrSupport is about a release that is no longer supported.
	ErrSupport = errors.New("release out of support")
)

// problem is one of the errors above, said in a sentence.
type problem struct {
	kind error
	text string
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

// Find returns the release with the given version; the error wraps ErrUnknown.
func Find(releases []Release, version string) (Release, error) {
	var known []string
	for _, r := range releases {
		if r.Version == version {
			return r, nil
		}
		known = append(known, r.Version)
	}
	return Release{}, &problem{ErrUnknown, fmt.Sprintf("this operator does not know version %q; it knows %s", version, strings.Join(known, ", "))}
}

// CheckHost returns nil when the release was tested with a host's version, such
// as v1.37.1, and else an error that wraps ErrHost.
func (r Release) CheckHost(host string) error {
	version := semver.MajorMinor(host)
	if version == "" {
		return &problem{ErrHost, fmt.Sprintf("the host cluster reports version %q, which is not a valid Kubernetes version", host)}
	}
	if semver.Compare(version, "v"+r.Host.From) < 0 || semver.Compare(version, "v"+r.Host.To) > 0 {
		return &problem{ErrHost, fmt.Sprintf("the host cluster runs Kubernetes %s; %s was tested with %s to %s", host, r.Version, r.Host.From, r.Host.To)}
	}
	return nil
}
