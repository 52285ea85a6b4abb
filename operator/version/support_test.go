package version

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// line returns minor releases, the first of which are released, and each of which is
// upgraded to from the one before.
func line(n, released int) []Release {
	var out []Release
	for i := 1; i <= n; i++ {
		r := Release{Version: fmt.Sprintf("v0.%d.0", i), Released: i <= released}
		if i > 1 {
			r.UpgradesFrom = []string{fmt.Sprintf("v0.%d.0", i-1)}
		}
		out = append(out, r)
	}
	return out
}

func TestCheckSupport(t *testing.T) {
	patched := slices.Insert(line(4, 4), 3, Release{Version: "v0.3.1", Released: true, UpgradesFrom: []string{"v0.3.0"}})
	candidate := append(line(3, 3), Release{Version: "v0.4.0-rc.1", Released: true, UpgradesFrom: []string{"v0.3.0"}})
	dead := line(4, 4)
	dead[1].UpgradesFrom = nil
	for _, test := range []struct {
		reason    string
		releases  []Release
		release   string
		runs      bool
		says, end string
	}{
		{"nothing is released, and all are run", line(4, 0), "v0.1.0", true, "", ""},
		{"nor is one refused that is to be installed", line(4, 0), "v0.1.0", false, "", ""},
		{"three are released", line(3, 3), "v0.1.0", false, "", ""},
		{"the fourth is not released yet", line(4, 3), "v0.1.0", false, "", ""},
		{"four are released", line(4, 4), "v0.1.0", false, "v0.1.0 is no longer supported, only the last 3 minor releases are: set spec.version to v0.4.0, the newest", ""},
		{"the oldest of three", line(4, 4), "v0.2.0", false, "", ""},
		{"one that is not released yet", line(6, 4), "v0.6.0", false, "", ""},
		{"the newest is one that users have", line(6, 5), "v0.2.0", false, "", "set spec.version to v0.5.0, the newest"},
		{"patch releases are no minor releases", patched, "v0.2.0", false, "", ""},
		{"nor are release candidates", candidate, "v0.1.0", false, "", ""},
		{"it runs, one step away", line(4, 4), "v0.1.0", true, "v0.1.0 is no longer supported, only the last 3 minor releases are: set spec.version to v0.2.0", ""},
		{"it runs, two steps away", line(5, 5), "v0.1.0", true, "", "set spec.version to v0.2.0 first, and then to v0.3.0"},
		{"it runs, four steps away", line(7, 7), "v0.1.0", true, "", "set spec.version to v0.2.0 first, and then to v0.3.0 and v0.4.0 and v0.5.0"},
		{"it runs, and nothing leads out", dead, "v0.1.0", true, "", "create another registry and copy the clusters"},
	} {
		err := CheckSupport(test.releases, test.release, test.runs)
		if test.says == "" && test.end == "" {
			if err != nil {
				t.Errorf("%s: %v", test.reason, err)
			}
			continue
		}
		if !errors.Is(err, ErrSupport) || test.says != "" && err.Error() != test.says || !strings.HasSuffix(err.Error(), test.end) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// TestWayOutOfNoSupport follows the sentences from a release that left support long
// ago: each step is allowed, and the last is supported.
func TestWayOutOfNoSupport(t *testing.T) {
	releases := line(9, 9)
	running, steps := "v0.1.0", 0
	for err := CheckSupport(releases, running, true); err != nil; err = CheckSupport(releases, running, true) {
		_, way, found := strings.Cut(err.Error(), "set spec.version to ")
		next, _, _ := strings.Cut(way, " ")
		if !found || CheckUpgrade(releases, running, next) != nil || steps > 9 {
			t.Fatalf("%s leads from %s to %q, and that is refused: %v", err, running, next, CheckUpgrade(releases, running, next))
		}
		running, steps = next, steps+1
	}
	if running != "v0.7.0" {
		t.Errorf("the way ends at %s", running)
	}
}

// TestInstallOutOfSupport expects that a registry doesn't begin with a release out
// of support, and is brought through one.
func TestInstallOutOfSupport(t *testing.T) {
	releases := line(5, 5)
	if err := CheckUpgrade(releases, "", "v0.2.0"); !errors.Is(err, ErrSupport) {
		t.Errorf("an installation: %v", err)
	}
	for _, allowed := range [][2]string{{"", "v0.3.0"}, {"v0.1.0", "v0.1.0"}, {"v0.1.0", "v0.2.0"}, {"v0.2.0", "v0.3.0"}} {
		if err := CheckUpgrade(releases, allowed[0], allowed[1]); err != nil {
			t.Errorf("%q to %s: %v", allowed[0], allowed[1], err)
		}
	}
}
