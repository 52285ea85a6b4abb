package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// StopNode ends a node as a power cut does: kubelet, containerd and every pod
// at once, without a goodbye. The node's disk stays.
func (c *Cluster) StopNode(ctx context.Context, name string) error {
	if err := c.loadNode(name); err != nil {
		return err
	}
	if err := c.machine(name).Kill(ctx); err != nil {
		return err
	}
	return c.network().Detach(ctx, controlPlane, name)
}

// StartNode starts a stopped node with the disk it had and waits until it is
// Ready. A node that runs is left alone.
func (c *Cluster) StartNode(ctx context.Context, name string) error {
	if err := c.loadNode(name); err != nil {
		return err
	}
	bins, err := c.programs(ctx)
	if err != nil {
		return err
	}
	index, err := c.nodeIndex(name)
	if err != nil {
		return err
	}
	if err := c.startNode(ctx, bins, index); err != nil {
		return err
	}
	api, err := c.client(ctx)
	if err != nil {
		return err
	}
	return c.waitNodeReady(ctx, api, name)
}

// PartitionNode cuts a running node off from every other machine. Its pods go on.
func (c *Cluster) PartitionNode(ctx context.Context, name string) error {
	if err := c.loadRunningNode(ctx, name); err != nil {
		return err
	}
	return c.network().Partition(ctx, controlPlane, name)
}

// HealNode ends a partition.
func (c *Cluster) HealNode(ctx context.Context, name string) error {
	if err := c.loadRunningNode(ctx, name); err != nil {
		return err
	}
	return c.network().Heal(ctx, controlPlane, name)
}

// WipeNode loses what is on a stopped node's volumes: each is empty afterwards,
// as a disk that was formatted anew and mounted at its old place.
func (c *Cluster) WipeNode(ctx context.Context, name string) error {
	if err := c.loadNode(name); err != nil {
		return err
	}
	m := c.machine(name)
	running, err := m.Running(ctx)
	if err != nil {
		return err
	}
	if running {
		return fmt.Errorf("node %s runs, and its pods use the volumes; stop it first with \"node stop %s\"", name, name)
	}
	contents, err := filepath.Glob(filepath.Join(m.Disk(), volumes, "*", "*"))
	if err != nil {
		return err
	}
	for _, path := range contents {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// EmptyVolume removes what is on a volume of a node, under the pods that use it.
// The volume's name is the last part of its path.
func (c *Cluster) EmptyVolume(ctx context.Context, node, volume string) error {
	if err := c.loadNode(node); err != nil {
		return err
	}
	path := filepath.Join(c.machine(node).Disk(), volumes, filepath.Base(volume))
	contents, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("node %s has no volume %s: %w", node, volume, err)
	}
	for _, entry := range contents {
		if err := os.RemoveAll(filepath.Join(path, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) loadNode(name string) error {
	if err := c.load(); err != nil {
		return err
	}
	_, err := c.nodeIndex(name)
	return err
}

func (c *Cluster) loadRunningNode(ctx context.Context, name string) error {
	if err := c.loadNode(name); err != nil {
		return err
	}
	running, err := c.machine(name).Running(ctx)
	if err != nil {
		return err
	}
	if !running {
		return fmt.Errorf("node %s is stopped and has no network; start it with \"node start %s\"", name, name)
	}
	return nil
}
