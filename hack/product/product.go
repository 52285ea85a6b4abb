// Package product knows what the project ships, the programs and their
// images, and stamps all of them with one version and commit.
package product

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clusterregistry/operator/hack/git"
	"github.com/clusterregistry/operator/operator/version"
)

// Program is a command that the project ships.
type Program struct {
	// Name is the file's name.
	Name string
	// Package is its folder in the repository.
	Package string
	// Image is true when it is shipped as a container image too.
	Image bool
	// Overlay is a file for the flag -overlay of "go build", empty for none.
	Overlay string
}

// Programs are all that the project ships.
var Programs = []Program{
	{Name: "clusterregistry-operator", Package: "./operator", Image: true},
	{Name: "clusterregistry-apiserver", Package: "./apiserver", Image: true},
	{Name: "clusterregistry-helper", Package: "./helper", Image: true},
	{Name: "clusterregistry-controller", Package: "./controller", Image: true},
	{Name: "clusterregistry-backup", Package: "./helper/backup", Image: true},
	{Name: "kubectl-registry", Package: "./cli/kubectl-registry"},
}

// Stamp says which source a build is made of.
type Stamp struct {
	// Version is a release's tag, else a Go pseudo-version of the commit.
	// Every version is also a valid image tag.
	Version string
	// Commit is the full hash. Commit and Date are empty for a release of the registry.
	Commit string
	// Date is the commit's, in RFC 3339 and UTC: a build has no time of its own.
	Date string
	// Dirty is true when the work tree differs from the commit.
	Dirty bool
}

// OfRegistry is the stamp of a release of the registry: its version alone. The digests of
// its images are recorded in the very commit that they are built from, so they can't
// depend on which commit that is.
func OfRegistry(r version.Release) Stamp { return Stamp{Version: r.Version} }

// ReadStamp reads the stamp from git. Where there is no git, as in a container
// build, VERSION, COMMIT and COMMIT_DATE must be set; they win over git.
func ReadStamp(ctx context.Context, dir string) (Stamp, error) {
	s := Stamp{Version: os.Getenv("VERSION"), Commit: os.Getenv("COMMIT"), Date: os.Getenv("COMMIT_DATE")}
	if s.Version != "" && s.Commit != "" && s.Date != "" {
		return s, nil
	}
	commit, err := git.Run(ctx, dir, "rev-parse", "HEAD")
	if err != nil {
		return Stamp{}, fmt.Errorf("what to stamp the build with: %w; set VERSION, COMMIT and COMMIT_DATE where there is no git checkout", err)
	}
	seconds, err := git.Run(ctx, dir, "show", "--no-patch", "--format=%ct", "HEAD")
	if err != nil {
		return Stamp{}, err
	}
	changes, err := git.Run(ctx, dir, "status", "--porcelain")
	if err != nil {
		return Stamp{}, err
	}
	// No tag at HEAD is the ordinary case and an empty answer.
	tag, err := git.Run(ctx, dir, "tag", "--points-at", "HEAD", "--list", "v*")
	if err != nil {
		return Stamp{}, err
	}
	var unix int64
	if _, err := fmt.Sscan(seconds, &unix); err != nil {
		return Stamp{}, fmt.Errorf("commit time %q: %w", seconds, err)
	}
	date := time.Unix(unix, 0).UTC()
	return s.orElse(Stamp{Version: versionOf(tag, commit, date, changes != ""), Commit: commit, Date: date.Format(time.RFC3339), Dirty: changes != ""}), nil
}

// orElse fills empty fields of s from other.
func (s Stamp) orElse(other Stamp) Stamp {
	if s.Version != "" {
		other.Version = s.Version
	}
	if s.Commit != "" {
		other.Commit = s.Commit
	}
	if s.Date != "" {
		other.Date = s.Date
	}
	return other
}

func versionOf(tag, commit string, date time.Time, dirty bool) string {
	v, _, _ := strings.Cut(tag, "\n")
	if v == "" {
		v = "v0.0.0-" + date.Format("20060102150405") + "-" + commit[:12]
	}
	if dirty {
		v += "-dirty"
	}
	return v
}

// LDFlags returns the linker flags that stamp a program. The variables are
// those of k8s.io/component-base/version, where a Kubernetes API server's own
// /version endpoint finds them.
func (s Stamp) LDFlags() string {
	state := "clean"
	if s.Dirty {
		state = "dirty"
	}
	major, minor, _ := strings.Cut(strings.TrimPrefix(s.Version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	flags := []string{"-s", "-w"}
	for _, v := range [][2]string{{"gitVersion", s.Version}, {"gitMajor", major}, {"gitMinor", minor}, {"gitCommit", s.Commit}, {"gitTreeState", state}, {"buildDate", s.Date}} {
		flags = append(flags, "-X", "k8s.io/component-base/version."+v[0]+"="+v[1])
	}
	return strings.Join(flags, " ")
}

// Platform is what a program runs on, in Go's names.
type Platform struct{ OS, Arch string }

// String returns the platform as a part of file names.
func (p Platform) String() string { return p.OS + "-" + p.Arch }

// File returns the name of a program's file on the platform.
func (p Platform) File(program Program) string {
	if p.OS == "windows" {
		return program.Name + ".exe"
	}
	return program.Name
}

// Desktops are the platforms of people's computers, on which the plugin runs.
var Desktops = []Platform{
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"linux", "amd64"}, {"linux", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// Build compiles the programs of the checkout in dir for Linux on an architecture,
// one of Go's names for them, into out.
func Build(ctx context.Context, dir, out, arch string, stamp Stamp, programs ...Program) error {
	return BuildFor(ctx, dir, out, Platform{"linux", arch}, stamp, programs...)
}

// BuildFor is Build for any platform. Files have the names that Platform.File gives them.
func BuildFor(ctx context.Context, dir, out string, platform Platform, stamp Stamp, programs ...Program) error {
	for _, p := range programs {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-overlay", p.Overlay, "-ldflags", stamp.LDFlags(), "-o", filepath.Join(out, platform.File(p)), p.Package)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Arch)
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s for %s: %w\n%s", p.Name, platform, err, output)
		}
	}
	return nil
}

// Operator returns the operator.
func Operator() Program { return Programs[0] }

// Plugin returns the plugin for kubectl.
func Plugin() Program { return Programs[len(Programs)-1] }

// Registry returns the programs that a release of the registry consists of: their images
// run in the registry, not beside it.
func Registry() []Program {
	return slices.DeleteFunc(WithImage(), func(p Program) bool { return p.Name == Operator().Name })
}

// WithImage returns the programs that are shipped as images.
func WithImage() []Program {
	return slices.DeleteFunc(slices.Clone(Programs), func(p Program) bool { return !p.Image })
}
