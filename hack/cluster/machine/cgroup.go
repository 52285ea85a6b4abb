package machine

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Layout is how this computer arranges cgroups.
type Layout struct {
	// Unified is true for cgroup v2.
	Unified bool
	// Base is the cgroup below which machines are made: on v1 this process's
	// own in the memory hierarchy, on v2 the root, since a v2 cgroup that
	// holds processes can't also have controlled children.
	Base string
}

const cgroupRoot = "/sys/fs/cgroup"

// v1Controllers are the hierarchies that kubelet and runc can't do without.
var v1Controllers = []string{"cpu", "cpuset", "memory", "devices", "freezer", "pids"}

// Cgroups finds the computer's layout, or says what it lacks.
func Cgroups() (Layout, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Layout{}, err
	}
	return layout(cgroupRoot, string(own))
}

// layout is Cgroups for the hierarchies mounted at root and a process whose
// /proc/self/cgroup is own.
func layout(root, own string) (Layout, error) {
	if isMount(root, unix.CGROUP2_SUPER_MAGIC) {
		return Layout{Unified: true, Base: "/"}, nil
	}
	var missing []string
	for _, c := range v1Controllers {
		if !isMount(path.Join(root, c), unix.CGROUP_SUPER_MAGIC) {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		return Layout{}, fmt.Errorf("unsupported cgroup layout: %s is neither cgroup v2 nor a full cgroup v1: it lacks %s; boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)",
			root, strings.Join(missing, ", "))
	}
	for line := range strings.Lines(own) {
		// Lines read ID:CONTROLLERS:PATH (cgroups(7)).
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 && fields[1] == "memory" {
			return Layout{Base: fields[2]}, nil
		}
	}
	return Layout{}, errors.New("/proc/self/cgroup names no memory cgroup")
}

func isMount(dir string, magic int64) bool {
	var stat unix.Statfs_t
	return unix.Statfs(dir, &stat) == nil && stat.Type == magic
}

// Path returns the cgroup of the machine with the given id, as the computer sees it.
func (l Layout) Path(id string) string { return path.Join(l.Base, id) }

// removeCgroups removes what is left of a machine's cgroups: with v2, runc
// forgets the ones that kubelet and containerd made below.
func removeCgroups(id string) error {
	layout, err := Cgroups()
	if err != nil {
		return err
	}
	hierarchies := []string{cgroupRoot}
	if !layout.Unified {
		if hierarchies, err = filepath.Glob(path.Join(cgroupRoot, "*")); err != nil {
			return err
		}
	}
	for _, hierarchy := range hierarchies {
		var dirs []string
		err := filepath.WalkDir(path.Join(hierarchy, layout.Path(id)), func(dir string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, dir)
			}
			return err
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, dir := range slices.Backward(dirs) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// KubeletRoot returns kubelet's cgroupRoot, as the machine sees it.
func (l Layout) KubeletRoot(id string) string {
	if l.Unified {
		return "/"
	}
	return l.Path(id)
}

// namespaces gives a v2 machine its own view of the tree. On v1 the machine
// sees the whole tree, where its own path is the one in /proc/self/cgroup.
func (l Layout) namespaces() []specs.LinuxNamespace {
	if !l.Unified {
		return nil
	}
	return []specs.LinuxNamespace{{Type: specs.CgroupNamespace}}
}

func (l Layout) mounts() []specs.Mount {
	if !l.Unified {
		return nil
	}
	return []specs.Mount{{Destination: cgroupRoot, Type: "cgroup", Source: "cgroup", Options: []string{"rw", "nosuid", "noexec", "nodev"}}}
}

// prepareUnified moves the machine's init into a leaf and hands every
// controller down: in v2 only a cgroup without processes of its own can have
// controlled children. Called inside the machine.
func prepareUnified() error {
	leaf := path.Join(cgroupRoot, "init")
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path.Join(leaf, "cgroup.procs"), []byte("0"), 0); err != nil {
		return err
	}
	available, err := os.ReadFile(path.Join(cgroupRoot, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range strings.Fields(string(available)) {
		if err := os.WriteFile(path.Join(cgroupRoot, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
			return fmt.Errorf("hand down cgroup controller %s: %w", c, err)
		}
	}
	return nil
}
