package network

import (
	"context"
	"fmt"
)

// Beside says that a control plane without nodes has no bridge of its own, but is
// plugged into that of another cluster: the pods of that one reach it, as the pods of
// a real cluster reach another one in the same data center.
type Beside struct {
	// ID is that of the other cluster's network.
	ID string
	// Index tells the control planes on one bridge apart, from 1 to MaxBeside.
	Index int
	// Nodes is how many nodes the other cluster has. The addresses of their pods are
	// routed.
	Nodes int
}

// MaxBeside is how many control planes can be beside one cluster.
const MaxBeside = 100

// firstBeside is the last byte of the address of the first one; nodes end before it.
const firstBeside = 101

// plug makes the namespace of a control plane that is beside another cluster, and its
// link to that one's bridge, when they are not there yet.
func (n Network) plug(ctx context.Context, controlPlane string) error {
	other := Network{ID: n.Beside.ID, Subnet: n.Subnet}
	bridged, ns := other.netns(controlPlane), n.netns(controlPlane)
	if !exists(ctx, bridged) {
		return fmt.Errorf("the cluster that it is beside has no network (%s is missing), perhaps since a reboot: bring that one up first", other.NetNS(controlPlane))
	}
	if !exists(ctx, ns) {
		if err := addNetNS(ctx, ns); err != nil {
			return err
		}
		if err := ip(ctx, "-n "+ns+" link set lo up"); err != nil {
			return err
		}
	}
	if n.plugged(ctx, controlPlane) {
		return nil
	}
	// What an interrupted run has left on either side.
	for _, stale := range []string{"-n " + bridged + " link del " + n.plugLink(), "-n " + ns + " link del eth0"} {
		_ = ip(ctx, stale)
	}
	commands := in(bridged,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", n.plugLink(), ns),
		fmt.Sprintf("link set %s master %s up", n.plugLink(), bridge))
	commands = append(commands, in(ns,
		fmt.Sprintf("addr add %s/24 dev eth0", n.ControlPlane()),
		"link set eth0 up")...)
	for node := 1; node <= n.Beside.Nodes; node++ {
		commands = append(commands, in(ns, fmt.Sprintf("route replace %s via %s", PodCIDR(node), n.Node(node)))...)
	}
	return ip(ctx, commands...)
}

// plugged reports whether plug has done all that it does: its last command is the
// route to the pods of the last node.
func (n Network) plugged(ctx context.Context, controlPlane string) bool {
	ns := n.netns(controlPlane)
	if ip(ctx, "-n "+ns+" link show eth0 up") != nil {
		return false
	}
	last := "route get " + n.Node(1).String()
	if n.Beside.Nodes > 0 {
		last = fmt.Sprintf("route get %s", firstPod(n.Beside.Nodes))
	}
	return ip(ctx, "-n "+ns+" "+last) == nil
}

// firstPod returns an address that pods of a node have.
func firstPod(node int) string { return fmt.Sprintf("10.244.%d.2", node) }

// plugLink is the name of the link at the bridge.
func (n Network) plugLink() string { return "cp-" + n.ID }
