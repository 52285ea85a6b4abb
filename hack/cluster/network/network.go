// Package network wires the local cluster: a network namespace for the control
// plane that holds a bridge, one for each node, and a veth pair that lets the
// computer's own shell in. Pods of different nodes reach each other by static
// routes. Everything is made with iproute2.
package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Network is the wiring of one cluster.
type Network struct {
	// ID is unique on this computer and at most 8 characters: it is part of
	// interface names.
	ID string
	// Subnet is the /24 that the computer, the control plane and the nodes share.
	Subnet netip.Prefix
	// Beside is set for a control plane on the bridge, and in the subnet, of another
	// cluster.
	Beside *Beside
}

const (
	bridge = "br0"
	// netnsDir is where iproute2 keeps named network namespaces.
	netnsDir = "/run/netns"
)

// ControlPlane returns the control plane's address.
func (n Network) ControlPlane() netip.Addr {
	if n.Beside != nil {
		return n.host(byte(firstBeside - 1 + n.Beside.Index))
	}
	return n.host(1)
}

// Node returns the address of the node with the given index, from 1.
func (n Network) Node(index int) netip.Addr { return n.host(byte(10 + index)) }

// Shell returns the computer's own address in the cluster's network.
func (n Network) Shell() netip.Addr { return n.host(254) }

// PodCIDR returns the addresses of a node's pods; clusters may share them,
// since they exist inside the namespaces only.
func PodCIDR(index int) string { return fmt.Sprintf("10.244.%d.0/24", index) }

// The address ranges inside a cluster.
const (
	PodsCIDR     = "10.244.0.0/16"
	ServicesCIDR = "10.96.0.0/16"
	DNSAddress   = "10.96.0.10"
	// KubernetesAddress is the Service of the API server.
	KubernetesAddress = "10.96.0.1"
)

// NetNS returns the path of a machine's network namespace.
func (n Network) NetNS(machine string) string { return filepath.Join(netnsDir, n.netns(machine)) }

func (n Network) netns(machine string) string { return "cr-" + n.ID + "-" + machine }

func (n Network) shellLink() string { return "cr-" + n.ID }

// wayIn is the link through which the computer's shell gets in.
func (n Network) wayIn() string {
	if n.Beside != nil {
		return Network{ID: n.Beside.ID}.shellLink()
	}
	return n.shellLink()
}

func (n Network) host(last byte) netip.Addr {
	a := n.Subnet.Addr().As4()
	a[3] = last
	return netip.AddrFrom4(a)
}

// Up makes the control plane's namespace with its bridge and the way in, when
// they are not there yet.
func (n Network) Up(ctx context.Context, controlPlane string) error {
	if n.Beside != nil {
		return n.plug(ctx, controlPlane)
	}
	ns := n.netns(controlPlane)
	if !exists(ctx, ns) {
		// After a reboot, or when its last process died, the kernel takes its
		// time to remove a namespace with its links. One that is about to
		// vanish must not pass for ours.
		if err := n.removeShellLink(ctx); err != nil {
			return err
		}
		if err := addNetNS(ctx, ns); err != nil {
			return err
		}
		if err := ip(ctx, in(ns,
			"link set lo up",
			"link add "+bridge+" type bridge",
			fmt.Sprintf("addr add %s/24 dev %s", n.ControlPlane(), bridge),
			"link set "+bridge+" up")...); err != nil {
			return errors.Join(err, ip(ctx, "netns del "+ns))
		}
	}
	if ip(ctx, "-n "+ns+" link show shell") == nil {
		return nil
	}
	// The range may have been taken since the cluster was made.
	if _, err := ChooseSubnet(ctx, n.Subnet.String()); err != nil {
		return err
	}
	return ip(ctx,
		fmt.Sprintf("link add %s type veth peer name shell netns %s", n.shellLink(), ns),
		fmt.Sprintf("-n %s link set shell master %s up", ns, bridge),
		fmt.Sprintf("addr add %s/24 dev %s", n.Shell(), n.shellLink()),
		"link set "+n.shellLink()+" up")
}

// Attach makes the namespace of the node with the given name and index, plugs
// it into the bridge and routes its pods. An earlier namespace of that name is
// replaced: a machine that starts finds no rules or links of its last run.
func (n Network) Attach(ctx context.Context, controlPlane, node string, index, nodes int) error {
	if err := n.Detach(ctx, controlPlane, node); err != nil {
		return err
	}
	cp, ns := n.netns(controlPlane), n.netns(node)
	if err := addNetNS(ctx, ns); err != nil {
		return err
	}
	commands := in(cp,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", node, ns),
		fmt.Sprintf("link set %s master %s up", node, bridge))
	commands = append(commands, in(ns,
		"link set lo up",
		fmt.Sprintf("addr add %s/24 dev eth0", n.Node(index)),
		"link set eth0 up",
		fmt.Sprintf("route add default via %s", n.ControlPlane()))...)
	commands = append(commands, in(cp, fmt.Sprintf("route replace %s via %s", PodCIDR(index), n.Node(index)))...)
	for other := 1; other <= nodes; other++ {
		if other != index {
			commands = append(commands, in(ns, fmt.Sprintf("route add %s via %s", PodCIDR(other), n.Node(other)))...)
		}
	}
	return ip(ctx, commands...)
}

// Detach removes a node's namespace and its link. It is no error when they are gone.
func (n Network) Detach(ctx context.Context, controlPlane, node string) error {
	cp, ns := n.netns(controlPlane), n.netns(node)
	// The kernel frees a namespace some time after its last process; the
	// link's name must be free at once.
	if exists(ctx, cp) && ip(ctx, "-n "+cp+" link show "+node) == nil {
		if err := ip(ctx, "-n "+cp+" link del "+node); err != nil {
			return err
		}
	}
	if !exists(ctx, ns) {
		return nil
	}
	return ip(ctx, "netns del "+ns)
}

// Partition takes a node off the bridge: its link stays up, but nothing that
// is sent through it arrives, as when a switch fails.
func (n Network) Partition(ctx context.Context, controlPlane, node string) error {
	return ip(ctx, fmt.Sprintf("-n %s link set %s nomaster", n.netns(controlPlane), node))
}

// Heal ends a partition.
func (n Network) Heal(ctx context.Context, controlPlane, node string) error {
	return ip(ctx, fmt.Sprintf("-n %s link set %s master %s", n.netns(controlPlane), node, bridge))
}

// Partitioned reports whether a node is off the bridge.
func (n Network) Partitioned(ctx context.Context, controlPlane, node string) bool {
	out, err := exec.CommandContext(ctx, "ip", "-n", n.netns(controlPlane), "-o", "link", "show", node).Output()
	return err == nil && !bytes.Contains(out, []byte("master "+bridge))
}

// Down removes every link and namespace of the cluster.
func (n Network) Down(ctx context.Context) error {
	errs := []error{n.removeShellLink(ctx)}
	namespaces, err := filepath.Glob(n.NetNS("*"))
	errs = append(errs, err)
	for _, path := range namespaces {
		if ip(ctx, "netns del "+filepath.Base(path)) != nil {
			// After a reboot iproute2's files remain without their mounts.
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// removeShellLink removes the way in. It is no error when it is gone, or goes
// at the same time because its namespace does.
func (n Network) removeShellLink(ctx context.Context) error {
	there := func() bool { return ip(ctx, "link show "+n.shellLink()) == nil }
	if !there() {
		return nil
	}
	if err := ip(ctx, "link del "+n.shellLink()); err != nil && there() {
		return err
	}
	return nil
}

// Reachable returns why the computer's shell would not reach the control plane
// through the cluster's own link, or nil. Without the link, what is sent to
// the cluster would leave the computer by its default route.
func (n Network) Reachable(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "ip", "-oneline", "route", "get", n.ControlPlane().String()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("no route to the control plane: %w: %s", err, bytes.TrimSpace(out))
	}
	if !bytes.Contains(out, []byte(" dev "+n.wayIn()+" ")) {
		return fmt.Errorf("the control plane %s is not reached through %s (ip route get says %q)", n.ControlPlane(), n.wayIn(), bytes.TrimSpace(out))
	}
	return nil
}

// addNetNS makes a network namespace that does not exist.
func addNetNS(ctx context.Context, ns string) error {
	// One that didn't survive a reboot has left an empty file.
	if err := os.Remove(filepath.Join(netnsDir, ns)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return ip(ctx, "netns add "+ns)
}

func exists(ctx context.Context, ns string) bool {
	return exec.CommandContext(ctx, "ip", "-n", ns, "link", "show", "lo").Run() == nil
}

func in(ns string, commands ...string) []string {
	out := make([]string, len(commands))
	for i, c := range commands {
		out[i] = "-n " + ns + " " + c
	}
	return out
}

// ip runs the commands one by one and stops at the first that fails.
func ip(ctx context.Context, commands ...string) error {
	for _, c := range commands {
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", c, err, bytes.TrimSpace(out))
		}
	}
	return nil
}
