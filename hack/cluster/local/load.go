package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/clusterregistry/operator/hack/cluster/addons"
)

// Load imports an archive of images on every node that runs.
func (c *Cluster) Load(ctx context.Context, archive string) error {
	if err := c.load(); err != nil {
		return err
	}
	if _, err := os.Stat(archive); err != nil {
		return fmt.Errorf("image archive: %w; \"make images\" builds this project's", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for i := 1; i <= c.state.Nodes; i++ {
		group.Go(func() error { return c.importImages(ctx, nodeName(i), archive) })
	}
	return group.Wait()
}

func (c *Cluster) importImages(ctx context.Context, node, archive string) error {
	m := c.machine(node)
	running, err := m.Running(ctx)
	if err != nil {
		return err
	}
	if !running {
		return fmt.Errorf("node %s is stopped and can't take images; start it with \"node start %s\" first", node, node)
	}
	content, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	_, err = m.Exec(ctx, content, "ctr", "--namespace", "k8s.io", "images", "import", "--digests=false", "-")
	return err
}

// loadOnce imports the archive on a node unless its disk has it already.
func (c *Cluster) loadOnce(ctx context.Context, node, archive string) error {
	m := c.machine(node)
	marker := filepath.Join(m.Disk(), "var", "lib", "containerd", "loaded-"+filepath.Base(archive))
	if _, err := os.Stat(marker); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := addons.Wait(ctx, "containerd on "+node, func(ctx context.Context) error {
		probe, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := m.Exec(probe, nil, "ctr", "version")
		return err
	}); err != nil {
		return fmt.Errorf("%w\nthe end of %s:\n%s", err, m.LogFile("containerd"), tailFile(m.LogFile("containerd")))
	}
	if err := c.importImages(ctx, node, archive); err != nil {
		return err
	}
	return os.WriteFile(marker, nil, 0o644)
}
