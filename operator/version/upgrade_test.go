package version

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var history = []Release{
	{Version: "v0.1.0", Etcd: "v3.6.14", Helper: "v0.1.0", Layout: "v1", Serves: []string{"v1alpha1"}, Reads: []string{"v1alpha1"}, Stores: "v1alpha1"},
	{Version: "v0.1.1", Etcd: "v3.6.14", UpgradesFrom: []string{"v0.1.0"}},
	{Version: "v0.2.0", Etcd: "v3.6.14", UpgradesFrom: []string{"v0.1.0", "v0.1.1"}, Serves: []string{"v1alpha1", "v1beta1"}, Reads: []string{"v1alpha1", "v1beta1"}, Stores: "v1alpha1"},
	{Version: "v0.3.0", Etcd: "v3.7.3", Helper: "v0.3.0", Layout: "v1", UpgradesFrom: []string{"v0.2.0"}, Serves: []string{"v1beta1", "v1"}, Reads: []string{"v1alpha1", "v1beta1"}, Stores: "v1beta1"},
	{Version: "v0.4.0", Etcd: "v3.7.3", Helper: "v0.4.0", Layout: "v2", UpgradesFrom: []string{"v0.3.0"}},
	{Version: "v9.0.0", Etcd: "v3.7.3"},
}

func TestCheckUpgrade(t *testing.T) {
	for _, test := range []struct {
		reason, running, wanted string
		kind                    error
		says                    string
	}{
		{"the first installation", "", "v0.3.0", nil, ""},
		{"what runs already, and the way back to it", "v0.1.0", "v0.1.0", nil, ""},
		{"what runs already, unknown as it is", "v0.9.0", "v0.9.0", nil, ""},
		{"one step", "v0.1.0", "v0.2.0", nil, ""},
		{"a patch may be left out", "v0.1.1", "v0.2.0", nil, ""},
		{"the next one is left out", "v0.1.0", "v0.3.0", ErrUpgrade, "v0.1.0 -> v0.3.0 skips v0.2.0; set spec.version to v0.2.0 first"},
		{"two are left out", "v0.1.0", "v0.4.0", ErrUpgrade, "skips v0.2.0 and v0.3.0; set spec.version to v0.2.0 first"},
		{"backward", "v0.2.0", "v0.1.0", ErrUpgrade, "v0.2.0 -> v0.1.0 is a downgrade, which is not possible: set spec.version back to v0.2.0"},
		{"no way at all", "v0.2.0", "v9.0.0", ErrUpgrade, "set spec.version back to v0.2.0"},
		{"from a release of a newer operator", "v0.9.0", "v0.2.0", ErrUnknown, "the registry runs v0.9.0, which this operator does not know: install"},
		{"to one", "v0.2.0", "v0.9.0", ErrUnknown, `not know version "v0.9.0"`},
	} {
		err := CheckUpgrade(history, test.running, test.wanted)
		if !errors.Is(err, test.kind) || test.kind != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

func TestPath(t *testing.T) {
	releases := []Release{
		{Version: "v0.1.0"}, {Version: "v0.1.1", UpgradesFrom: []string{"v0.1.0"}}, {Version: "v0.2.0", UpgradesFrom: []string{"v0.1.0", "v0.1.1"}},
		{Version: "v0.2.1", UpgradesFrom: []string{"v0.1.0", "v0.1.1", "v0.2.0"}}, {Version: "v0.3.0", UpgradesFrom: []string{"v0.2.0", "v0.2.1"}},
	}
	for _, test := range []struct{ reason, from, to, want string }{
		{"one step", "v0.1.0", "v0.2.0", "v0.2.0"},
		{"the newest patch of those that are as near", "v0.1.0", "v0.3.0", "v0.2.1 v0.3.0"},
		{"where it is already", "v0.2.0", "v0.2.0", ""},
		{"backward", "v0.2.0", "v0.1.0", ""},
		{"from nowhere", "v0.0.9", "v0.1.0", ""},
	} {
		if got := strings.Join(Path(releases, test.from, test.to), " "); got != test.want {
			t.Errorf("%s: %s", test.reason, got)
		}
	}
}

func TestCanReturn(t *testing.T) {
	for _, test := range []struct {
		reason   string
		to, from int
		want     bool
	}{
		{"both store the same", 0, 2, true},
		{"the older one reads what the newer one stores", 2, 3, true},
		{"the older one does not know what is stored", 0, 3, false},
	} {
		if got := CanReturn(history[test.to], history[test.from]); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
	}
	if got := ServesBoth(history[2], history[3]); !reflect.DeepEqual(got, []string{"v1beta1"}) {
		t.Errorf("both serve %v", got)
	}
	if !reflect.DeepEqual(history[2].Serves, []string{"v1alpha1", "v1beta1"}) {
		t.Errorf("the table has changed: %v", history[2].Serves)
	}
}

func TestMembersAreTheSame(t *testing.T) {
	one := history[3].own()
	for reason, change := range map[string]func(*Members){"etcd": func(m *Members) { m.Etcd = "v3.7.4" }, "helper": func(m *Members) { m.Helper = "v0.4.0" }, "layout": func(m *Members) { m.Layout = "v2" },
		"image of etcd": func(m *Members) { m.EtcdDigest = "sha256:e" }, "image of the helper": func(m *Members) { m.HelperDigest = "sha256:f" }} {
		other := one
		other.Release = "v0.3.1"
		if !one.Same(other) {
			t.Error("another release brings the same members, and they are said to differ")
		}
		if change(&other); one.Same(other) {
			t.Errorf("another %s, and they are said to be the same", reason)
		}
	}
}

func TestEtcd(t *testing.T) {
	for _, test := range []struct {
		reason   string
		release  int
		recorded string
		seen     []string
		want     string // release, etcd, helper and layout
	}{
		{"nothing was seen yet", 0, "", []string{"", ""}, "v0.1.0 v3.6.14 v0.1.0 v1"},
		{"an older one", 0, "", []string{"v3.6.12"}, "v0.1.0 v3.6.14 v0.1.0 v1"},
		{"a single member is newer", 0, "", []string{"v3.6.14", "v3.7.3"}, "v0.3.0 v3.7.3 v0.3.0 v1"},
		{"a newer one of no release", 0, "", []string{"v3.7.4"}, "v0.1.0 v3.7.4 v0.1.0 v1"},
		{"numbers, not texts, are compared", 0, "", []string{"v3.6.9"}, "v0.1.0 v3.6.14 v0.1.0 v1"},
		{"its own members", 3, "v0.3.0", []string{"v3.7.3"}, "v0.3.0 v3.7.3 v0.3.0 v1"},
		{"members of a later release with the same etcd", 3, "v0.4.0", []string{"v3.7.3"}, "v0.4.0 v3.7.3 v0.4.0 v2"},
		{"the same, two releases later", 0, "v0.4.0", []string{"v3.7.3"}, "v0.4.0 v3.7.3 v0.4.0 v2"},
		{"the release of members is not recorded yet", 3, "", []string{"v3.7.3"}, "v0.3.0 v3.7.3 v0.3.0 v1"},
		{"members of an earlier release", 4, "v0.3.0", []string{"v3.7.3"}, "v0.4.0 v3.7.3 v0.4.0 v2"},
		{"a newer etcd was seen than is recorded", 0, "v0.2.0", []string{"v3.7.3"}, "v0.3.0 v3.7.3 v0.3.0 v1"},
		{"a release that is not known", 0, "v0.9.0", nil, "v0.1.0 v3.6.14 v0.1.0 v1"},
	} {
		got := WithMembers(history, test.recorded, test.seen...)[test.release]
		if m := got.Members; m.Release+" "+m.Etcd+" "+m.Helper+" "+m.Layout != test.want || got.Version != history[test.release].Version {
			t.Errorf("%s: %+v", test.reason, got)
		}
	}
	published := slices.Clone(history)
	published[3].Images = Images{Server: "sha256:a", Helper: "sha256:b", Etcd: "sha256:c"}
	for _, test := range []struct {
		reason, recorded, seen string
		release                int
		want                   string // etcd with its digest, and the digest of the helper
	}{
		{"its own members", "v0.3.0", "v3.7.3", 3, "v3.7.3 sha256:c sha256:b"},
		{"they stay when older servers return", "v0.3.0", "v3.7.3", 0, "v3.7.3 sha256:c sha256:b"},
		{"a release that is not published", "v0.1.0", "v3.6.14", 0, "v3.6.14  "},
		{"an etcd of no release has another image", "v0.3.0", "v3.7.4", 3, "v3.7.4  sha256:b"},
	} {
		m := WithMembers(published, test.recorded, test.seen)[test.release].Members
		if got := m.Etcd + " " + m.EtcdDigest + " " + m.HelperDigest; got != test.want {
			t.Errorf("%s: %s", test.reason, got)
		}
	}
	for _, test := range []struct{ reason, running, target, says string }{
		{"the same", "v3.6.14", "v3.6.14", ""},
		{"a patch", "v3.6.12", "v3.6.14", ""},
		{"a minor version", "v3.6.14", "v3.7.3", ""},
		{"two minor versions", "v3.5.40", "v3.7.3", "only one minor version at a time"},
		{"a major version", "v3.7.3", "v4.0.0", "only one minor version at a time"},
		{"too old a patch", "v3.6.9", "v3.7.3", "must run v3.6.11 or a later patch before v3.7.3"},
		{"an old patch stays in its minor version", "v3.6.9", "v3.6.14", ""},
		{"nothing that could be compared", "", "v3.7.3", "not a valid version"},
	} {
		err := CheckEtcd(test.running, test.target)
		if (err == nil) != (test.says == "") || err != nil && (!errors.Is(err, ErrUpgrade) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
