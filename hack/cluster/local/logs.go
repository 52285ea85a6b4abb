package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/clusterregistry/operator/hack/cluster/components"
)

// Logs gathers what there is to learn from into dir: the services' logs of
// each machine, the pods' logs, and the API's view of nodes, pods and events.
func (c *Cluster) Logs(ctx context.Context, dir string) error {
	if err := c.load(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	machines, err := os.ReadDir(filepath.Join(c.Dir, "machines"))
	if err != nil {
		return err
	}
	for _, entry := range machines {
		m := c.machine(entry.Name())
		target := filepath.Join(dir, entry.Name())
		err := errors.Join(
			copyTree(filepath.Dir(m.LogFile("init")), target),
			copyTree(filepath.Join(m.Disk(), "var", "log", "pods"), filepath.Join(target, "pods")))
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(c.Out, "logs of cluster %q are in %s\n", c.Name, dir)
	return c.describe(ctx, dir)
}

// describe writes the API's view of the cluster into dir.
func (c *Cluster) describe(ctx context.Context, dir string) error {
	if err := c.network().Reachable(ctx); err != nil {
		return fmt.Errorf("the API's view is missing: %w", err)
	}
	kubernetes, err := c.Builder.Ensure(ctx, components.Kubernetes(c.state.KubernetesVersion), "kubectl")
	if err != nil {
		return err
	}
	var errs []error
	for file, args := range map[string][]string{
		"nodes.txt":  {"describe", "nodes"},
		"pods.yaml":  {"get", "pods", "--all-namespaces", "--output=yaml"},
		"events.txt": {"get", "events", "--all-namespaces", "--sort-by=.metadata.creationTimestamp"},
	} {
		out, err := exec.CommandContext(ctx, filepath.Join(kubernetes, "kubectl"), append(args, "--kubeconfig="+c.Kubeconfig(), "--request-timeout=20s")...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", file, err, out)
		}
		errs = append(errs, err, os.WriteFile(filepath.Join(dir, file), out, 0o644))
	}
	return errors.Join(errs...)
}

// copyTree copies the regular files below source. A file that vanishes
// meanwhile, as rotated logs do, is left out.
func copyTree(source, target string) error {
	return filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(target, rel)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(target, rel), content, 0o644)
	})
}
