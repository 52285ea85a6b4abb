package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/clusterregistry/operator/hack/cluster/machine"
)

// filler is the file that fills a limited volume.
const filler = "filler"

// limitable is a volume of a node that runs.
type limitable struct {
	machine machine.Machine
	name    string
	// path is that of the volume in the machine, and below that of the directory on the
	// node's disk, which the machine sees as well, also while something is mounted at path.
	path, below string
}

func (c *Cluster) limitable(ctx context.Context, node, name string) (limitable, error) {
	if err := c.loadRunningNode(ctx, node); err != nil {
		return limitable{}, err
	}
	m, name := c.machine(node), filepath.Base(name)
	v := limitable{machine: m, name: name, path: filepath.Join(volumes, name), below: filepath.Join(m.Disk(), volumes, name)}
	if _, err := os.Stat(v.below); err != nil {
		return limitable{}, fmt.Errorf("node %s has no volume %s: %w", node, name, err)
	}
	return v, nil
}

// limited returns an error unless the volume has a file system of its own: no other may be
// filled, since all share the disk of this computer.
func (v limitable) limited(ctx context.Context) error {
	if _, err := v.machine.Exec(ctx, nil, "mountpoint", "-q", v.path); err != nil {
		return fmt.Errorf("volume %s has no file system of its own; \"node limit\" gives it one: %w", v.name, err)
	}
	return nil
}

// run runs commands in the machine, as far as they succeed.
func (v limitable) run(ctx context.Context, commands ...[]string) error {
	for _, args := range commands {
		if _, err := v.machine.Exec(ctx, nil, args...); err != nil {
			return err
		}
	}
	return nil
}

// mount mounts an image at the volume's path, and there alone. As long as the mount around it
// is shared, it also appears where a pod has mounted the volume, and is unmounted in both
// places when kubelet takes the pod down.
func (v limitable) mount(ctx context.Context, image string) error {
	out, err := v.machine.Exec(ctx, nil, "findmnt", "--noheadings", "--output=TARGET", "--target", v.path)
	if err != nil {
		return err
	}
	around := strings.TrimSpace(string(out))
	return errors.Join(
		v.run(ctx, []string{"mount", "--make-private", around}, []string{"mount", "-o", "loop", image, v.path}),
		v.run(ctx, []string{"mount", "--make-shared", around}))
}

// LimitVolume gives a volume a file system of its own, of some MiB, and moves what is on the
// volume there. Pods see that when they mount the volume next, so what writes to it has to be
// paused before, and its pod to be deleted afterwards. When the node stops, the volume is
// empty.
func (c *Cluster) LimitVolume(ctx context.Context, node, volume, mebibytes string) error {
	size, err := strconv.ParseInt(mebibytes, 10, 64)
	if err != nil || size <= 0 {
		return fmt.Errorf("%q is not a number of MiB", mebibytes)
	}
	v, err := c.limitable(ctx, node, volume)
	if err != nil {
		return err
	}
	if v.limited(ctx) == nil {
		return fmt.Errorf("volume %s has a file system of its own already", v.name)
	}
	// Mounted, it needs no name, and is gone with the last mount.
	image := filepath.Join(v.machine.Disk(), volumes+"-"+v.name)
	defer func() { _ = os.Remove(image) }()
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, size<<20); err != nil {
		return err
	}
	// No blocks are reserved for root, by whom the volume is filled.
	if err := v.run(ctx, []string{"mkfs.ext4", "-q", "-F", "-m", "0", image}); err != nil {
		return err
	}
	if err := v.mount(ctx, image); err != nil {
		return err
	}
	err = v.run(ctx, []string{"rmdir", filepath.Join(v.path, "lost+found")}, []string{"cp", "-a", v.below + "/.", v.path})
	if err != nil {
		return errors.Join(err, v.run(ctx, []string{"umount", v.path}))
	}
	// Who has the old mount, or mounts the volume after the node was stopped, is to find no
	// data instead of data of before.
	return c.EmptyVolume(ctx, node, volume)
}

// UnlimitVolume undoes LimitVolume, with what is on the volume, and under the same
// conditions.
func (c *Cluster) UnlimitVolume(ctx context.Context, node, volume string) error {
	v, err := c.limitable(ctx, node, volume)
	if err != nil {
		return err
	}
	if err := v.limited(ctx); err != nil {
		return err
	}
	return v.run(ctx, []string{"cp", "-a", v.path + "/.", v.below}, []string{"umount", v.path})
}

// FillVolume leaves no space on a volume that LimitVolume gave a file system.
func (c *Cluster) FillVolume(ctx context.Context, node, volume string) error {
	path, err := c.filler(ctx, node, volume)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(allocate(file), file.Close())
}

// FreeVolume undoes FillVolume.
func (c *Cluster) FreeVolume(ctx context.Context, node, volume string) error {
	path, err := c.filler(ctx, node, volume)
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// filler returns the path at which this computer sees the file that fills a volume.
func (c *Cluster) filler(ctx context.Context, node, volume string) (string, error) {
	v, err := c.limitable(ctx, node, volume)
	if err != nil {
		return "", err
	}
	if err := v.limited(ctx); err != nil {
		return "", err
	}
	state, err := v.machine.State(ctx)
	return filepath.Join("/proc", strconv.Itoa(state.PID), "root", v.path, filler), err
}

// allocate gives a file all that is free, without writing that much.
func allocate(file *os.File) error {
	const block = 4096
	offset := int64(0)
	for size := int64(1 << 30); size >= block; {
		err := syscall.Fallocate(int(file.Fd()), 0, offset, size)
		switch {
		case err == nil:
			offset += size
		case errors.Is(err, syscall.ENOSPC):
			size /= 8 // each refusal has the file system write its journal first
		case !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("fill the volume: %w", err)
		}
	}
	return nil
}
