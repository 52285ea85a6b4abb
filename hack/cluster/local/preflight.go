package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/clusterregistry/operator/hack/cluster/machine"
)

// program is something that the cluster runs but does not build.
type program struct {
	name string
	// paths are where it may be; any one will do. Empty means $PATH.
	paths []string
	// pkg is its package on Debian and Ubuntu.
	pkg string
}

var programs = []program{
	{name: "containerd", pkg: "containerd"},
	{name: "ctr", pkg: "containerd"},
	{name: "runc", pkg: "runc"},
	{name: "ptp (CNI plugin)", paths: cniPaths("ptp"), pkg: "containernetworking-plugins"},
	{name: "host-local (CNI plugin)", paths: cniPaths("host-local"), pkg: "containernetworking-plugins"},
	{name: "ip", pkg: "iproute2"},
	{name: "nft", pkg: "nftables"},
	{name: "iptables", pkg: "iptables"},
	{name: "conntrack", pkg: "conntrack"},
	{name: "mount", pkg: "mount"},
}

// cniDirs are where distributions install CNI plugins.
var cniDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

func cniPaths(plugin string) []string {
	var out []string
	for _, dir := range cniDirs {
		out = append(out, filepath.Join(dir, plugin))
	}
	return out
}

// cniPlugins returns the folder that has the CNI plugins.
func cniPlugins() string {
	for _, path := range cniPaths("ptp") {
		if _, err := os.Stat(path); err == nil {
			return filepath.Dir(path)
		}
	}
	return cniDirs[0]
}

func (p program) found() bool {
	if len(p.paths) == 0 {
		_, err := exec.LookPath(p.name)
		return err == nil
	}
	for _, path := range p.paths {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// minimumDisk is what binaries, build caches, images and volumes take.
const minimumDisk = 6 << 30

// Possible returns why this computer can't run a local cluster with its files
// in dir and its programs in cache, or nil. It changes nothing; missing packages count only where Up can't install them.
func Possible(ctx context.Context, dir, cache string) error {
	if os.Geteuid() != 0 {
		return errors.New("not root: network namespaces and cgroups need it; run the command with sudo")
	}
	if err := kernel(ctx); err != nil {
		return err
	}
	if _, err := machine.Cgroups(); err != nil {
		return err
	}
	for _, folder := range []string{dir, cache} {
		if err := disk(folder, minimumDisk); err != nil {
			return err
		}
	}
	if missing := missingPackages(); len(missing) > 0 && !hasApt() {
		return fmt.Errorf("missing programs, and this is no Debian or Ubuntu where they could be installed: %s; install the equivalents of these packages: %s",
			strings.Join(missingPrograms(), ", "), strings.Join(missing, " "))
	}
	return nil
}

// kernel checks for what can't be loaded later: kube-proxy's nftables mode
// wants Linux 5.13.
func kernel(ctx context.Context) error {
	var uname unix.Utsname
	if err := unix.Uname(&uname); err != nil {
		return err
	}
	release := string(bytes.TrimRight(uname.Release[:], "\x00"))
	if err := kernelRelease(release); err != nil {
		return err
	}
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	// modprobe may be absent or pointless; what counts is the result.
	if !bytes.Contains(filesystems, []byte("\toverlay\n")) && exec.CommandContext(ctx, "modprobe", "overlay").Run() != nil {
		return fmt.Errorf("unsupported kernel %s: it has no overlay file system, which containerd needs; load or build in the module \"overlay\"", release)
	}
	return nil
}

func kernelRelease(release string) error {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("unsupported kernel: can't read the version of %q", release)
	}
	if major < 5 || major == 5 && minor < 13 {
		return fmt.Errorf("unsupported kernel %s: kube-proxy's nftables mode needs Linux 5.13 or newer; update the kernel", release)
	}
	return nil
}

// disk checks that minimum bytes are free where dir is or will be.
func disk(dir string, minimum int64) error {
	existing := dir
	for {
		var stat unix.Statfs_t
		err := unix.Statfs(existing, &stat)
		if errors.Is(err, unix.ENOENT) && existing != "/" {
			existing = filepath.Dir(existing)
			continue
		}
		if err != nil {
			return fmt.Errorf("statfs %s: %w", existing, err)
		}
		if free := int64(stat.Bavail) * stat.Bsize; free < minimum {
			return fmt.Errorf("%.1f GB of disk are free at %s, and a cluster needs %d GB; free some, or use a checkout (and XDG_CACHE_HOME) on another disk",
				float64(free)/(1<<30), existing, minimum>>30)
		}
		return nil
	}
}

func missingPrograms() []string {
	var out []string
	for _, p := range programs {
		if !p.found() {
			out = append(out, p.name)
		}
	}
	return out
}

func missingPackages() []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range programs {
		if !p.found() && !seen[p.pkg] {
			seen[p.pkg] = true
			out = append(out, p.pkg)
		}
	}
	return out
}

func hasApt() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil
}

// installPackages installs what is missing. Nothing that is installed is
// removed for it, and no service is started on the computer.
func installPackages(ctx context.Context, out io.Writer) error {
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(out, "  install Debian packages: %s\n", strings.Join(missing, " "))
	for _, args := range [][]string{
		{"update"},
		append([]string{"install", "--yes", "--no-install-recommends", "--no-remove"}, missing...),
	} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		// RUNLEVEL=1 keeps invoke-rc.d from starting the packages' services.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s\ninstall these packages by hand: %s", strings.Join(args, " "), err, output, strings.Join(missing, " "))
		}
	}
	if still := missingPrograms(); len(still) > 0 {
		return fmt.Errorf("still missing after apt-get install: %s; put them on $PATH (%s)", strings.Join(still, ", "), os.Getenv("PATH"))
	}
	return nil
}
