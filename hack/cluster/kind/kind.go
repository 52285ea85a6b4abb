// Package kind makes clusters with kind (https://kind.sigs.k8s.io) where
// Docker or Podman runs. It is a thin layer over kind's command, and CI does
// not cover it: CI's machines have neither.
package kind

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
)

// Cluster is a cluster that kind runs.
type Cluster struct {
	// Name is kind's name for the cluster.
	Name string
	// Dir holds the kubeconfig.
	Dir string
	// KubernetesVersion picks the node image; empty means kind's default.
	KubernetesVersion string
	// Nodes is the number of workers.
	Nodes int
	// Out receives kind's own progress.
	Out io.Writer
}

// Possible returns why kind can't be used here, or nil.
func Possible(ctx context.Context) error {
	if _, err := exec.LookPath("kind"); err != nil {
		return errors.New("the command kind is not on $PATH; see https://kind.sigs.k8s.io")
	}
	for _, engine := range []string{"docker", "podman"} {
		if exec.CommandContext(ctx, engine, "info").Run() == nil {
			return nil
		}
	}
	return errors.New("neither Docker nor Podman answers \"info\"; start one of them")
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// Up creates the cluster unless kind knows it already.
func (c *Cluster) Up(ctx context.Context) error {
	known, err := exec.CommandContext(ctx, "kind", "get", "clusters").Output()
	if err != nil {
		return fmt.Errorf("kind get clusters: %w", err)
	}
	for _, name := range strings.Fields(string(known)) {
		if name == c.Name {
			return c.kind(ctx, nil, "export", "kubeconfig", "--kubeconfig", c.Kubeconfig())
		}
	}
	config := "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes:\n- role: control-plane\n" + strings.Repeat("- role: worker\n", c.Nodes)
	args := []string{"create", "cluster", "--config", "-", "--wait", "5m", "--kubeconfig", c.Kubeconfig()}
	if c.KubernetesVersion != "" {
		args = append(args, "--image", "kindest/node:"+c.KubernetesVersion)
	}
	return c.kind(ctx, strings.NewReader(config), args...)
}

// Down deletes the cluster.
func (c *Cluster) Down(ctx context.Context) error {
	if err := c.kind(ctx, nil, "delete", "cluster", "--kubeconfig", c.Kubeconfig()); err != nil {
		return err
	}
	return os.RemoveAll(c.Dir)
}

// Status prints the cluster's nodes.
func (c *Cluster) Status(ctx context.Context) error { return c.kind(ctx, nil, "get", "nodes") }

// Load brings an archive of images to every node.
func (c *Cluster) Load(ctx context.Context, archive string) error {
	return c.kind(ctx, nil, "load", "image-archive", archive)
}

// Logs exports the cluster's logs into dir.
func (c *Cluster) Logs(ctx context.Context, dir string) error {
	return c.kind(ctx, nil, "export", "logs", dir)
}

func (c *Cluster) kind(ctx context.Context, stdin io.Reader, args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "kind", append(args, "--name", c.Name)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, c.Out, io.MultiWriter(c.Out, &stderr)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return nil
}
