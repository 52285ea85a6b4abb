package version

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

var history = []Release{
	{Version: "v0.1.0", Etcd: "v3.6.14", Helper: "v0.1.0", Serves: []string{"v1alpha1"}, Reads: []string{"v1alpha1"}, Stores: "v1alpha1"},
	{Version: "v0.1.1", Etcd: "v3.6.14", UpgradesFrom: []string{"v0.1.0"}},
	{Version: "v0.2.0", Etcd: "v3.6.14", UpgradesFrom: []string{"v0.1.0", "v0.1.1"}, Serves: []string{"v1alpha1", "v1beta1"}, Reads: []string{"v1alpha1", "v1beta1"}, Stores: "v1alpha1"},
	{Version: "v0.3.0", Etcd: "v3.7.3", Helper: "v0.3.0", UpgradesFrom: []string{"v0.2.0"}, Serves: []string{"v1beta1", "v1"}, Reads: []string{"v1alpha1", "v1beta1"}, Stores: "v1beta1"},
	{Version: "v0.4.0", Etcd: "v3.7.3", Helper: "v0.4.0", UpgradesFrom: []string{"v0.3.0"}},
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
		{"to one", "v0.2.0", "v0.9.0", ErrUnknown, `no version "v0.9.0"`},
	} {
		err := CheckUpgrade(history, test.running, test.wanted)
		if !errors.Is(err, test.kind) || test.kind != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
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

func TestEtcd(t *testing.T) {
	for _, test := range []struct {
		reason       string
		seen         []string
		want, helper string
	}{
		{"nothing was seen yet", []string{"", ""}, "v3.6.14", "v0.1.0"},
		{"an older one", []string{"v3.6.12"}, "v3.6.14", "v0.1.0"},
		{"a single member is newer", []string{"v3.6.14", "v3.7.3"}, "v3.7.3", "v0.3.0"},
		{"a newer one of no release", []string{"v3.7.4"}, "v3.7.4", "v0.1.0"},
		{"numbers, not texts, are compared", []string{"v3.6.9"}, "v3.6.14", "v0.1.0"},
	} {
		if got := WithEtcd(history, test.seen...)[0]; got.Etcd != test.want || got.Helper != test.helper || got.Version != history[0].Version {
			t.Errorf("%s: %+v", test.reason, got)
		}
	}
	for _, test := range []struct{ reason, running, target, says string }{
		{"the same", "v3.6.14", "v3.6.14", ""},
		{"a patch", "v3.6.12", "v3.6.14", ""},
		{"a minor version", "v3.6.14", "v3.7.3", ""},
		{"two minor versions", "v3.5.40", "v3.7.3", "in steps of one minor version only"},
		{"a major version", "v3.7.3", "v4.0.0", "in steps of one minor version only"},
		{"too old a patch", "v3.6.9", "v3.7.3", "must run v3.6.11 or a later patch before v3.7.3"},
		{"an old patch stays in its minor version", "v3.6.9", "v3.6.14", ""},
		{"nothing that could be compared", "", "v3.7.3", "which is none"},
	} {
		err := CheckEtcd(test.running, test.target)
		if (err == nil) != (test.says == "") || err != nil && (!errors.Is(err, ErrUpgrade) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
