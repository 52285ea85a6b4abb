// Package local runs a multi-node Kubernetes cluster on this computer without
// Docker: real etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler on one machine, and containerd, kubelet and kube-proxy on
// each node's, where a machine is a set of namespaces (package machine).
//
// The way of an Up: preflight, programs, images, network and certificates,
// control plane, nodes, add-ons. Each step leaves alone what is there already,
// so that Up brings back a cluster after a reboot or a crash as well.
package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/cluster/machine"
	"github.com/clusterregistry/operator/hack/cluster/network"
	"github.com/clusterregistry/operator/hack/cluster/pki"
)

// Cluster is a cluster on this computer.
type Cluster struct {
	// Name tells clusters of one checkout apart.
	Name string
	// Dir holds all that the cluster keeps; Down removes it.
	Dir string
	// Builder provides the programs.
	Builder components.Builder
	// Out receives progress.
	Out io.Writer

	// KubernetesVersion, Nodes, Subnet and Beside are wishes for a new cluster. An
	// empty one means: as the cluster is, or the default for a new one. Without
	// nodes, there is a control plane only. Beside is the name of the cluster on
	// whose network that is; it goes down with it.
	KubernetesVersion string
	Nodes             *int
	Subnet            string
	Beside            string

	state state
}

// controlPlane is the name of the machine that runs the control plane.
const controlPlane = "cp"

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// Up brings the cluster up, or completes it, and waits until it is ready.
func (c *Cluster) Up(ctx context.Context) error {
	if err := Possible(ctx, c.Dir, c.Builder.Cache); err != nil {
		return err
	}
	clock := newStopwatch(c.Out)
	if err := installPackages(ctx, c.Out); err != nil {
		return err
	}
	clock.lap("packages")
	if err := c.loadOrCreateState(ctx); err != nil {
		return err
	}
	bins, err := c.programs(ctx)
	if err != nil {
		return err
	}
	clock.lap("programs")
	archive := ""
	if c.state.Nodes > 0 {
		if archive, err = c.platformImages(bins); err != nil {
			return err
		}
		clock.lap("images")
	}
	if err := c.startControlPlane(ctx, bins); err != nil {
		return err
	}
	api, err := c.client(ctx)
	if err != nil {
		return err
	}
	if err := c.publishInfo(ctx, api); err != nil {
		return err
	}
	clock.lap("control plane")
	if c.state.Nodes == 0 {
		clock.total(fmt.Sprintf("control plane %q is up: Kubernetes %s at %s, no nodes", c.Name, c.state.KubernetesVersion, c.server()))
		return nil
	}
	if err := c.startNodes(ctx, bins, archive); err != nil {
		return err
	}
	if err := c.waitNodesReady(ctx, api); err != nil {
		return err
	}
	clock.lap("nodes")
	if err := c.applyAddons(ctx, api, bins); err != nil {
		return err
	}
	clock.lap("add-ons")
	clock.total(fmt.Sprintf("cluster %q is up: Kubernetes %s, %d nodes", c.Name, c.state.KubernetesVersion, c.state.Nodes))
	return nil
}

// Down ends the cluster and removes all of it. It works on what a crash, a
// reboot or an interrupted Up left as well, and is no error when nothing is there.
func (c *Cluster) Down(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("not root: only root may end the cluster's processes; run the command with sudo")
	}
	clock := newStopwatch(c.Out)
	// They would be without a network.
	for _, beside := range c.besideIt() {
		if err := beside.Down(ctx); err != nil {
			return err
		}
	}
	if err := c.down(ctx); err != nil {
		return err
	}
	clock.total(fmt.Sprintf("cluster %q is gone", c.Name))
	return nil
}

func (c *Cluster) down(ctx context.Context) error {
	if err := c.halt(ctx); err != nil {
		return err
	}
	for _, dir := range []string{c.runtimeDir(), c.Dir} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return removeIfEmpty(filepath.Dir(c.runtimeDir()))
}

// halt ends the machines and removes the network; files stay.
func (c *Cluster) halt(ctx context.Context) error {
	// The runtime folder and the network are named after the checkout's path,
	// so that both are found even when the checkout's files are not.
	names, err := os.ReadDir(c.runtimeDir())
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, entry := range names {
		m := machine.Machine{ID: entry.Name(), Hostname: entry.Name(), Runtime: c.runtimeDir()}
		if err := m.Kill(ctx); err != nil {
			return err
		}
	}
	return c.network().Down(ctx)
}

func (c *Cluster) network() network.Network {
	n := network.Network{ID: c.id(), Subnet: c.state.Subnet}
	if beside := c.state.Beside; beside != nil {
		n.Beside = &network.Beside{ID: c.sibling(beside.Cluster).id(), Index: beside.Index, Nodes: beside.Nodes}
	}
	return n
}

func (c *Cluster) pki() pki.Store { return pki.Store{Dir: filepath.Join(c.Dir, "pki")} }

// machine returns the machine with the given name, without its services.
func (c *Cluster) machine(name string) machine.Machine {
	return machine.Machine{
		ID:       "cr-" + c.id() + "-" + name,
		Hostname: name,
		Folder:   filepath.Join(c.Dir, "machines", name),
		Runtime:  c.runtimeDir(),
		NetNS:    c.network().NetNS(name),
		Shared:   []string{c.Dir, c.Builder.Cache},
		Init:     filepath.Join(c.Dir, "bin", "machine-init"),
	}
}

// stopwatch prints how long each step took.
type stopwatch struct {
	out         io.Writer
	start, last time.Time
}

func newStopwatch(out io.Writer) *stopwatch {
	now := time.Now()
	return &stopwatch{out: out, start: now, last: now}
}

func (s *stopwatch) lap(step string) {
	fmt.Fprintf(s.out, "  %-14s %6.1fs\n", step, time.Since(s.last).Seconds())
	s.last = time.Now()
}

func (s *stopwatch) total(what string) {
	fmt.Fprintf(s.out, "%s (%.1fs)\n", what, time.Since(s.start).Seconds())
}
