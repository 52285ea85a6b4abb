package version

import (
	"strings"
	"testing"
)

func TestCheckFrozen(t *testing.T) {
	releases := []Release{{Version: "v0.1.0", Released: true, Layout: "v1"}, {Version: "v0.1.1", Released: true, Layout: "v1"}, {Version: "v0.2.0", Layout: "v2"}}
	const recorded = "layouts: {v1: a, v2: b}\nrenders:\n  v0.1.0: {one: c, two: d}\n  v0.1.1: {one: e}\n  v0.2.0: {one: f}\n"
	for _, test := range []struct {
		reason, old, new string
		says             []string
	}{
		{"nothing has changed", "", "", nil},
		{"a release that is not released renders something else", "{one: f}", "{one: g}", nil},
		{"its layout changes", "v2: b", "v2: c", nil},
		{"a released one renders another fixture as well", "{one: e}", "{one: e, two: g}", nil},
		{"a released one renders something else", "{one: e}", "{one: g}", []string{"v0.1.1 is released, and no longer renders fixture one as it did: undo"}},
		{"a fixture of a released one is gone", "one: c, ", "", []string{"fixture one is gone, which holds v0.1.0, which is released"}},
		{"a released one is gone", "  v0.1.1: {one: e}\n", "", []string{"fixture one is gone, which holds v0.1.1"}},
		{"the layout of a released one changes", "v1: a", "v1: c", []string{"layout v1 has changed, and v0.1.0, which is released, is rendered from it: undo that, and make the change in a copy"}},
		{"the layout of a released one is gone", "v1: a, ", "", []string{"layout v1 has changed"}},
		{"two changes", "{one: c, two: d}", "{one: x, two: y}", []string{"fixture one", "fixture two"}},
	} {
		was, err := ParseDigests([]byte(recorded))
		if err != nil {
			t.Fatal(err)
		}
		is, err := ParseDigests([]byte(strings.Replace(recorded, test.old, test.new, 1)))
		if err != nil {
			t.Fatal(err)
		}
		err = was.CheckFrozen(is, releases)
		if (err == nil) != (test.says == nil) || err != nil && strings.Count(err.Error(), "\n")+1 != len(test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
		for _, says := range test.says {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v does not say %q", test.reason, err, says)
			}
		}
	}
	if _, err := ParseDigests([]byte("renders: {v0.1.0: a}")); err == nil {
		t.Error("digests that are none were read")
	}
}
