package product

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/operator/version"
)

func TestVersion(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	date := time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC)
	for _, test := range []struct {
		reason, tag string
		dirty       bool
		want        string
	}{
		{reason: "no tag", want: "v0.0.0-20261120010203-0123456789ab"},
		{reason: "no tag, changed", dirty: true, want: "v0.0.0-20261120010203-0123456789ab-dirty"},
		{reason: "a release", tag: "v0.1.0", want: "v0.1.0"},
		{reason: "a changed release is not the release", tag: "v0.1.0", dirty: true, want: "v0.1.0-dirty"},
		{reason: "two tags at one commit", tag: "v0.1.0\nv0.1.0-rc.1", want: "v0.1.0"},
	} {
		if got := versionOf(test.tag, commit, date, test.dirty); got != test.want {
			t.Errorf("%s: got %s, want %s", test.reason, got, test.want)
		}
	}
}

func TestStampFromEnvironment(t *testing.T) {
	t.Setenv("VERSION", "v1.2.3")
	t.Setenv("COMMIT", "abc")
	t.Setenv("COMMIT_DATE", "2026-11-20T00:00:00Z")
	stamp, err := ReadStamp(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gitVersion=v1.2.3", "gitMajor=1", "gitMinor=2", "gitCommit=abc", "buildDate=2026-11-20T00:00:00Z"} {
		if !strings.Contains(stamp.LDFlags(), "version."+want) {
			t.Errorf("%s is missing in %s", want, stamp.LDFlags())
		}
	}
}

func TestStampNeedsGitOrEnvironment(t *testing.T) {
	t.Setenv("VERSION", "v1.2.3")
	t.Setenv("COMMIT", "")
	t.Setenv("GIT_CEILING_DIRECTORIES", "/")
	_, err := ReadStamp(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "set VERSION, COMMIT and COMMIT_DATE") {
		t.Errorf("got %v", err)
	}
}

func TestPlugin(t *testing.T) {
	if got := Plugin(); got.Name != "kubectl-registry" || got.Image {
		t.Errorf("the plugin is %+v", got)
	}
	for platform, want := range map[Platform]string{{"linux", "amd64"}: "kubectl-registry", {"windows", "arm64"}: "kubectl-registry.exe"} {
		if got := platform.File(Plugin()); got != want {
			t.Errorf("on %s its file is %s", platform, got)
		}
	}
}

// TestRegistry expects every image that a release runs, but etcd's, to be made of one program.
func TestRegistry(t *testing.T) {
	var made, runs []string
	for _, p := range Registry() {
		if !p.Image {
			t.Errorf("%s is of a release, and has no image", p.Name)
		}
		made = append(made, p.Name)
	}
	for _, image := range (version.Release{}).Runs() {
		if image.Name != "etcd" {
			runs = append(runs, image.Name)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(made)), slices.Sorted(slices.Values(runs))) {
		t.Errorf("the programs are %v, and a release runs %v", made, runs)
	}
}
