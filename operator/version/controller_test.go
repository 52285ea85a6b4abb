package version

import (
	"slices"
	"testing"
)

// TestControllers reads the table: the controller came with v0.4.0, backups as well, and
// they stay.
func TestControllers(t *testing.T) {
	releases, err := Releases()
	if err != nil {
		t.Fatal(err)
	}
	for _, function := range []string{"health", "registerHost"} {
		if got := FirstWith(releases, function); got != "v0.4.0" {
			t.Errorf("the first release with %s is %s", function, got)
		}
		first := slices.IndexFunc(releases, func(r Release) bool { return r.Version == "v0.4.0" })
		for i, r := range releases {
			if r.HasController() != (i >= first) || r.Controls(function) != (i >= first) {
				t.Errorf("%s has the controllers %v", r.Version, r.Controllers)
			}
			if r.Backups != (i >= first) {
				t.Errorf("%s keeps backups: %v", r.Version, r.Backups)
			}
		}
	}
	if got := FirstWith(releases, "none"); got != "" {
		t.Errorf("the first release with a function of no release is %s", got)
	}
}
