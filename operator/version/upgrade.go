package version

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// CheckUpgrade returns nil when a registry that runs one version, empty for none
// yet, may be brought to another. The error wraps ErrUpgrade, ErrUnknown when a
// newer operator brought the registry to where it is, or ErrSupport when it would
// begin with a release that is no longer supported.
func CheckUpgrade(releases []Release, running, wanted string) error {
	if running == "" {
		return CheckSupport(releases, wanted, false)
	}
	if running == wanted {
		return nil
	}
	to, err := Find(releases, wanted)
	if err != nil {
		return err
	}
	if _, err := Find(releases, running); err != nil {
		return &problem{ErrUnknown, fmt.Sprintf("the registry runs %s, which this operator does not know: install the operator that upgraded it, or a newer one", running)}
	}
	if slices.Contains(to.UpgradesFrom, running) {
		return nil
	}
	if semver.Compare(wanted, running) < 0 {
		return &problem{ErrUpgrade, fmt.Sprintf("%s -> %s is a downgrade, which is not possible: set spec.version back to %s", running, wanted, running)}
	}
	way := Path(releases, running, wanted)
	if len(way) == 0 {
		return &problem{ErrUpgrade, fmt.Sprintf("no upgrade leads from %s, which runs, to %s: set spec.version back to %s", running, wanted, running)}
	}
	way = way[:len(way)-1]
	return &problem{ErrUpgrade, fmt.Sprintf("%s -> %s skips %s; set spec.version to %s first", running, wanted, strings.Join(way, " and "), way[0])}
}

// CanReturn reports whether the servers of a release can take the place of those
// of another: they read what the others have stored.
func CanReturn(to, from Release) bool { return slices.Contains(to.Reads, from.Stores) }

// ServesBoth returns the API versions that both releases serve.
func ServesBoth(a, b Release) []string {
	return slices.DeleteFunc(slices.Clone(a.Serves), func(v string) bool { return !slices.Contains(b.Serves, v) })
}

// WithMembers returns releases with what etcd's pods are made of when each runs
// where members are of the recorded release, empty when that is not known, and
// have run the versions of etcd seen, of which empty ones were never seen: its
// own, unless the members have gone further. They don't go back: etcd can't, and
// to replace members once more for a return would only put them at risk.
func WithMembers(releases []Release, recorded string, seen ...string) []Release {
	var newest string
	for _, v := range seen {
		if semver.Compare(v, newest) > 0 {
			newest = v
		}
	}
	first := slices.IndexFunc(releases, func(r Release) bool { return r.Etcd == newest })
	stayed := slices.IndexFunc(releases, func(r Release) bool { return r.Version == recorded })
	out := slices.Clone(releases)
	for i := range out {
		m := out[i].own()
		if i < stayed {
			m = releases[stayed].own()
		}
		if semver.Compare(newest, m.Etcd) > 0 {
			if first >= 0 {
				m = releases[first].own()
			}
			if m.Etcd != newest {
				m.Etcd, m.EtcdDigest = newest, "" // of no release, whose digest no one knows
			}
		}
		out[i].Members = m
	}
	return out
}

// etcdFloors are the oldest patches from which the next minor version of etcd can
// be reached: older ones lose or revive members (etcd#19557, #20793, #20967).
var etcdFloors = map[string]string{"v3.5": "v3.5.32", "v3.6": "v3.6.11"}

// CheckEtcd returns nil when an etcd that runs one version can be brought to
// another, one minor version further at most, and else an error that wraps
// ErrUpgrade.
func CheckEtcd(running, target string) error {
	var major, from, to int
	if _, err := fmt.Sscanf(semver.MajorMinor(running), "v%d.%d", &major, &from); err != nil {
		return &problem{ErrUpgrade, fmt.Sprintf("etcd reports version %q, which is not a valid version", running)}
	}
	if _, err := fmt.Sscanf(semver.MajorMinor(target), "v"+fmt.Sprint(major)+".%d", &to); err != nil || to > from+1 {
		return &problem{ErrUpgrade, fmt.Sprintf("etcd runs %s, and can be upgraded to %s only one minor version at a time", running, target)}
	}
	if floor := etcdFloors[semver.MajorMinor(running)]; to > from && semver.Compare(running, floor) < 0 {
		return &problem{ErrUpgrade, fmt.Sprintf("etcd runs %s, and must run %s or a later patch before %s", running, floor, target)}
	}
	return nil
}
