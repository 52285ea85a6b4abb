package local

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/hack/cluster/addons"
	"github.com/clusterregistry/operator/hack/cluster/machine"
	"github.com/clusterregistry/operator/hack/cluster/network"
	"github.com/clusterregistry/operator/hack/cluster/pki"
)

//go:embed config
var configFiles embed.FS

// volumes is the folder for volumes on a node's disk.
const volumes = "/var/lib/volumes"

func nodeName(index int) string { return fmt.Sprintf("n%d", index) }

// nodeIndex returns the index of the node with the given name.
func (c *Cluster) nodeIndex(name string) (int, error) {
	for i := 1; i <= c.state.Nodes; i++ {
		if nodeName(i) == name {
			return i, nil
		}
	}
	if c.state.Nodes == 0 {
		return 0, fmt.Errorf("cluster %q has no nodes, and so no %q", c.Name, name)
	}
	return 0, fmt.Errorf("cluster %q has no node %q; its nodes are %s to %s", c.Name, name, nodeName(1), nodeName(c.state.Nodes))
}

// nodeValues fill the configuration files of a node's services.
type nodeValues struct {
	Name, Folder, CNIPlugins, PodCIDR, PodsCIDR, DNSAddress, CgroupRoot, PauseImage string

	PKI        pki.Store
	Kubeconfig func(string) string
}

// startNodes starts the nodes that don't run and gives them the platform's images.
func (c *Cluster) startNodes(ctx context.Context, bins binaries, archive string) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := 1; i <= c.state.Nodes; i++ {
		group.Go(func() error {
			if err := c.startNode(ctx, bins, i); err != nil {
				return err
			}
			return c.loadOnce(ctx, nodeName(i), archive)
		})
	}
	return group.Wait()
}

// startNode starts the node with the given index, unless it runs. A partition
// ends: a node that was asked to be up is.
func (c *Cluster) startNode(ctx context.Context, bins binaries, index int) error {
	name := nodeName(index)
	m := c.machine(name)
	running, err := m.Running(ctx)
	if err != nil {
		return err
	}
	if running {
		return c.network().Heal(ctx, controlPlane, name)
	}
	// Before the network: a link of remains that still run is in its way.
	if err := m.Kill(ctx); err != nil {
		return err
	}
	if err := c.writeNodeConfig(m, index); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	if err := c.network().Attach(ctx, controlPlane, name, index, c.state.Nodes); err != nil {
		return err
	}
	config := func(file string) string { return filepath.Join(m.Folder, "config", file) }
	m.Services = []machine.Service{
		{Name: "containerd", Args: []string{"/usr/bin/env", "containerd", "--config", config("containerd.toml")}},
		{Name: "kubelet", Args: []string{bins.kubernetes("kubelet"), "--config=" + config("kubelet.yaml"), "--kubeconfig=" + c.kubeconfigFor(name),
			"--hostname-override=" + name, "--node-ip=" + c.network().Node(index).String()}},
		{Name: "kube-proxy", Args: []string{bins.kubernetes("kube-proxy"), "--config=" + config("kube-proxy.yaml")}},
	}
	return m.Start(ctx)
}

func (c *Cluster) writeNodeConfig(m machine.Machine, index int) error {
	layout, err := machine.Cgroups()
	if err != nil {
		return err
	}
	values := nodeValues{
		Name: m.Hostname, Folder: m.Folder, CNIPlugins: cniPlugins(), PodCIDR: network.PodCIDR(index), PodsCIDR: network.PodsCIDR,
		DNSAddress: network.DNSAddress, CgroupRoot: layout.KubeletRoot(m.ID), PauseImage: platformReference("pause"),
		PKI: c.pki(), Kubeconfig: c.kubeconfigFor,
	}
	templates, err := template.ParseFS(configFiles, "config/*")
	if err != nil {
		return err
	}
	files := map[string]string{
		"containerd.toml": "containerd.toml",
		"kubelet.yaml":    "kubelet.yaml",
		"kube-proxy.yaml": "kube-proxy.yaml",
		"cni.conflist":    "cni/10-pods.conflist",
	}
	for source, target := range files {
		path := filepath.Join(m.Folder, "config", target)
		var content bytes.Buffer
		if err := templates.ExecuteTemplate(&content, source, values); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content.Bytes(), 0o644); err != nil {
			return err
		}
	}
	// Pods that don't use the cluster's DNS have no other: the cluster is closed.
	return os.WriteFile(filepath.Join(m.Folder, "config", "resolv.conf"), []byte("# no DNS servers\n"), 0o644)
}

// waitNodesReady waits until every node is Ready.
func (c *Cluster) waitNodesReady(ctx context.Context, api client.Client) error {
	for i := 1; i <= c.state.Nodes; i++ {
		if err := c.waitNodeReady(ctx, api, nodeName(i)); err != nil {
			return err
		}
	}
	return nil
}

// waitNodeReady waits until a node is Ready, or tells what its kubelet says.
func (c *Cluster) waitNodeReady(ctx context.Context, api client.Client, name string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	m := c.machine(name)
	// Until kubelet reports again, a node that was stopped may still count as Ready.
	started, err := os.Stat(filepath.Join(m.Folder, "config.json"))
	if err != nil {
		return err
	}
	err = addons.Wait(ctx, "node "+name+" to become Ready", func(ctx context.Context) error {
		var node corev1.Node
		if err := api.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return err
		}
		return nodeReady(node, started.ModTime())
	})
	if err != nil {
		return fmt.Errorf("%w\nthe end of %s:\n%s", err, m.LogFile("kubelet"), tailFile(m.LogFile("kubelet")))
	}
	return c.publishPodCIDR(ctx, api, name)
}

// publishPodCIDR writes the range of a node's pods to it, as kube-controller-manager does where
// it chooses the ranges.
func (c *Cluster) publishPodCIDR(ctx context.Context, api client.Client, name string) error {
	index, err := c.nodeIndex(name)
	if err != nil {
		return err
	}
	var node corev1.Node
	if err := api.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil || node.Spec.PodCIDR != "" {
		return err
	}
	before := node.DeepCopy()
	node.Spec.PodCIDR, node.Spec.PodCIDRs = network.PodCIDR(index), []string{network.PodCIDR(index)}
	return api.Patch(ctx, &node, client.MergeFrom(before))
}

// nodeReady returns why a node is not Ready since the given time, or nil.
func nodeReady(node corev1.Node, since time.Time) error {
	for _, condition := range node.Status.Conditions {
		switch {
		case condition.Type != corev1.NodeReady:
		case condition.Status != corev1.ConditionTrue:
			return fmt.Errorf("%s: %s", condition.Reason, condition.Message)
		case condition.LastHeartbeatTime.Time.Before(since.Truncate(time.Second)):
			return fmt.Errorf("its last report is from %s, before it was started", condition.LastHeartbeatTime.Format(time.RFC3339))
		default:
			return nil
		}
	}
	return errors.New("kubelet has not reported yet")
}
