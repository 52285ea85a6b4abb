package version

import (
	"strings"
	"testing"
)

func TestReleasesAreValid(t *testing.T) {
	releases, err := Releases()
	if err != nil || len(releases) == 0 {
		t.Errorf("%d releases, %v", len(releases), err)
	}
}

func TestParseRefuses(t *testing.T) {
	const good = `{version: v0.1.0, etcd: v3.6.14, helper: v0.1.0, layout: v1, serves: [v1], reads: [v1], stores: v1, host: {from: "1.34", to: "1.37"}, kubectl: {from: "1.9", to: "1.37"}}`
	for reason, test := range map[string]struct{ old, new, want string }{
		"nothing wrong":             {},
		"a version without v":       {"v0.1.0", "0.1.0", `version "0.1.0" is not a semantic version`},
		"an unknown field":          {"etcd:", "etdc:", `unknown field "etdc"`},
		"what can't be read":        {"stores: v1", "stores: v2", `stores "v2" but does not read it`},
		"a range the wrong way":     {`{from: "1.34"`, `{from: "1.40"`, `host from "1.40" to "1.37"`},
		"a helper of no release":    {"helper: v0.1.0", "helper: v0.0.9", `names "v0.0.9", which is not an earlier release`},
		"a way from nowhere":        {"serves: [v1]", "upgradesFrom: [v0.0.9], serves: [v1]", `names "v0.0.9", which is not an earlier release`},
		"a way from itself":         {"serves: [v1]", "upgradesFrom: [v0.1.0], serves: [v1]", "upgrades from itself"},
		"nothing served":            {"serves: [v1]", "serves: []", "serves is empty"},
		"no layout":                 {"layout: v1, ", "", `layout "" is not a name such as v1`},
		"a layout that is a path":   {"layout: v1", "layout: ../v1", `layout "../v1"`},
		"an etcd that is no number": {"v3.6.14", "newest", `etcd "newest"`},
	} {
		entry := strings.Replace(good, test.old, test.new, 1)
		_, err := Parse([]byte("releases:\n- " + entry + "\n"))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", reason, err)
		}
		if _, err := Parse([]byte("releases:\n- " + entry + "\n- " + entry + "\n")); err == nil {
			t.Errorf("%s, twice: no error", reason)
		}
	}
}

// FuzzParse reads tables of releases: one that is accepted has only releases that
// can be found, composed and compared.
func FuzzParse(f *testing.F) {
	f.Add(table)
	f.Add([]byte("releases:\n- {version: v0.1.0}\n"))
	f.Add([]byte("releases: [{version: v1.0.0, upgradesFrom: [v1.0.0]}, {}]"))
	f.Add([]byte("releases: [null, 1, a]"))
	f.Add([]byte("releases: {}\n---\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		releases, err := Parse(content)
		if err != nil {
			return
		}
		for _, r := range releases {
			if found, err := Find(releases, r.Version); err != nil || found.Version != r.Version {
				t.Errorf("%q is in the table, and is not found: %v", r.Version, err)
			}
			for _, from := range r.UpgradesFrom {
				if err := CheckUpgrade(releases, from, r.Version); err != nil {
					t.Error(err)
				}
			}
			for _, other := range releases {
				_ = CheckUpgrade(releases, other.Version, r.Version)
				_ = CheckEtcd(other.Etcd, r.Etcd)
			}
			_ = r.CheckHost("v1.37.1")
		}
		for _, r := range WithMembers(releases, "v0.3.0", "v3.7.3") {
			if r.Members.Etcd == "" || r.Members.Layout == "" {
				t.Errorf("%s has the members %+v", r.Version, r.Members)
			}
		}
	})
}
