package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// systemFolders hold the computer's programs and libraries, which a machine
// uses as they are, read-only.
var systemFolders = []string{"/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// writeBundle writes the OCI configuration and prepares the disk's mount points.
func (m Machine) writeBundle() error {
	for _, dir := range []string{m.Disk(), m.Runtime, filepath.Dir(m.LogFile("init"))} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	services, err := json.Marshal(m.Services)
	if err != nil {
		return err
	}
	if err := os.WriteFile(m.servicesFile(), services, 0o644); err != nil {
		return err
	}
	spec, err := m.spec()
	if err != nil {
		return err
	}
	config, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.Folder, "config.json"), config, 0o644)
}

func (m Machine) servicesFile() string { return filepath.Join(m.Folder, "services.json") }

// spec returns the container: as privileged as this process, because kubelet
// and containerd make containers in it, but with namespaces of its own.
func (m Machine) spec() (*specs.Spec, error) {
	caps, err := ownCapabilities()
	if err != nil {
		return nil, err
	}
	mounts, err := m.mounts()
	if err != nil {
		return nil, err
	}
	layout, err := Cgroups()
	if err != nil {
		return nil, err
	}
	spec := &specs.Spec{
		Version:  "1.0.2",
		Hostname: m.Hostname,
		Root:     &specs.Root{Path: m.Disk()},
		Mounts:   append(mounts, layout.mounts()...),
		Process: &specs.Process{
			Args:         []string{m.Init, InitCommand, m.servicesFile(), filepath.Dir(m.LogFile("init"))},
			Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"},
			Cwd:          "/",
			Capabilities: &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps},
		},
		Linux: &specs.Linux{
			CgroupsPath: layout.Path(m.ID),
			Namespaces: append(layout.namespaces(),
				specs.LinuxNamespace{Type: specs.PIDNamespace},
				specs.LinuxNamespace{Type: specs.MountNamespace},
				specs.LinuxNamespace{Type: specs.IPCNamespace},
				specs.LinuxNamespace{Type: specs.UTSNamespace},
				specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: m.NetNS}),
			Sysctl:    map[string]string{"net.ipv4.ip_forward": "1"},
			Resources: &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}},
		},
	}
	return spec, nil
}

// mounts returns what the machine sees of the computer beside its disk.
// Folders that are symbolic links (/bin on a merged /usr) are links on the
// disk as well.
func (m Machine) mounts() ([]specs.Mount, error) {
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc"},
		bind("/dev", "rw"),
		bind("/sys", "rw"),
		{Destination: "/run", Type: "tmpfs", Source: "tmpfs", Options: []string{"mode=755"}},
		{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: []string{"mode=1777"}},
	}
	for _, folder := range systemFolders {
		info, err := os.Lstat(folder)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return nil, err
		case info.Mode()&os.ModeSymlink != 0:
			if err := m.link(folder); err != nil {
				return nil, err
			}
		default:
			mounts = append(mounts, bind(folder, "ro"))
		}
	}
	if err := os.MkdirAll(filepath.Join(m.Disk(), "var"), 0o755); err != nil {
		return nil, err
	}
	for _, folder := range m.Shared {
		mounts = append(mounts, bind(folder, "rw"))
	}
	return mounts, nil
}

// link makes the symbolic link of the computer's file system on the disk too.
func (m Machine) link(folder string) error {
	target, err := os.Readlink(folder)
	if err != nil {
		return err
	}
	if err := os.Symlink(target, filepath.Join(m.Disk(), folder)); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func bind(folder, mode string) specs.Mount {
	return specs.Mount{Destination: folder, Type: "bind", Source: folder, Options: []string{"rbind", mode}}
}

// ownCapabilities returns the capabilities of this process: a machine can't
// have one that its maker lacks, and runc fails on the attempt.
func ownCapabilities() ([]string, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			var bits uint64
			if _, err := fmt.Sscanf(strings.TrimSpace(value), "%x", &bits); err != nil {
				return nil, fmt.Errorf("/proc/self/status: CapEff %q: %w", value, err)
			}
			var caps []string
			for i, name := range capabilityNames {
				if bits&(1<<i) != 0 {
					caps = append(caps, "CAP_"+name)
				}
			}
			return caps, nil
		}
	}
	return nil, errors.New("/proc/self/status has no CapEff line")
}

// capabilityNames are Linux's capabilities in the order of their bits
// (capabilities(7)).
var capabilityNames = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP
	LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT
	SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE
	AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)
