package framework

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Network is a network between this machine and a second place, a network namespace, in
// which programs run that reach servers here by addresses that are not loopback. It is
// gone with the test, even when that is killed.
type Network struct {
	t *testing.T
	// holder keeps the namespace: it ends when its standard input does.
	holder *exec.Cmd
	prefix netip.Prefix
	link   string
	given  map[netip.Addr]bool
}

// networks are the ranges among which a test chooses: none that a network uses
// (RFC 2544).
var networks = netip.MustParsePrefix("198.18.0.0/16")

// StartNetwork makes a network. It needs root, ip (iproute2) and nsenter (util-linux).
func StartNetwork(t *testing.T) *Network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("only root can make a network namespace: run this test as root")
	}
	n := &Network{t: t, holder: exec.Command("cat"), given: map[netip.Addr]bool{}} //nolint:noctx // it outlives the test's context
	n.holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	stdin, err := n.holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.holder.Start(); err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = n.holder.Wait()
	})
	pid := n.holder.Process.Pid
	n.link, n.prefix = fmt.Sprintf("crt%d", pid), unusedRange(t)
	n.ip("link", "add", n.link, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(pid))
	n.ip("link", "set", n.link, "up")
	n.inside("address", "add", n.host(254).String()+"/24", "dev", "eth0")
	n.inside("link", "set", "eth0", "up")
	return n
}

// unusedRange returns a range of this process's own, which no interface of this machine has.
func unusedRange(t *testing.T) netip.Prefix {
	t.Helper()
	taken, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	claims.Lock()
	defer claims.Unlock()
	for {
		// There is a range for each block of ports, which no two processes claim.
		b := networks.Addr().As4()
		b[2] = byte(claimBlock(t))
		prefix := netip.PrefixFrom(netip.AddrFrom4(b), 24)
		if !slices.ContainsFunc(taken, func(address net.Addr) bool {
			ip, ok := address.(*net.IPNet)
			return ok && prefix.Contains(netip.MustParseAddr(ip.IP.String()).Unmap())
		}) {
			return prefix
		}
	}
}

func (n *Network) host(number byte) netip.Addr {
	b := n.prefix.Addr().As4()
	b[3] = number
	return netip.AddrFrom4(b)
}

// Address returns an address of this machine on the network, by a number from 1 to 253.
func (n *Network) Address(number byte) string {
	n.t.Helper()
	address := n.host(number)
	if !n.given[address] {
		n.ip("address", "add", address.String()+"/24", "dev", n.link)
		n.given[address] = true
	}
	return address.String()
}

// Command returns a command that runs in the second place.
func (n *Network) Command(program string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", n.holder.Process.Pid), program}, args...)...) //nolint:gosec,noctx // the test's own; it may outlive the test's context
}

// Lose has packets to an address lost on the way.
func (n *Network) Lose(address string) {
	n.t.Helper()
	// The link carries them to a machine that is not there.
	n.inside("neighbor", "replace", address, "lladdr", "02:00:00:00:00:01", "dev", "eth0", "nud", "permanent")
}

// Find undoes Lose.
func (n *Network) Find(address string) {
	n.t.Helper()
	n.inside("neighbor", "delete", address, "dev", "eth0")
}

// Unroute has the second place know no route to addresses, from one moment on.
func (n *Network) Unroute(addresses ...string) {
	n.t.Helper()
	n.routes("add", addresses)
}

// Route undoes Unroute.
func (n *Network) Route(addresses ...string) {
	n.t.Helper()
	n.routes("delete", addresses)
}

func (n *Network) routes(verb string, addresses []string) {
	n.t.Helper()
	cmd := n.Command("ip", "-batch", "-")
	var lines strings.Builder
	for _, address := range addresses {
		_, _ = fmt.Fprintf(&lines, "route %s unreachable %s/32\n", verb, address)
	}
	cmd.Stdin = strings.NewReader(lines.String())
	n.run(cmd)
}

// ip configures this machine's side, inside that of the second place.
func (n *Network) ip(args ...string)     { n.t.Helper(); n.run(exec.Command("ip", args...)) } //nolint:gosec,noctx // as above
func (n *Network) inside(args ...string) { n.t.Helper(); n.run(n.Command("ip", args...)) }

func (n *Network) run(cmd *exec.Cmd) {
	n.t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("%s: %v: %s", strings.Join(cmd.Args, " "), err, out)
	}
}
