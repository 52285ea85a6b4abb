package framework

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Controller is a running clusterregistry-controller of this checkout.
type Controller struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *lockedBuffer
	done chan error
}

// StartController starts the clusterregistry-controller of this checkout with the given
// flags; it ends with the test, and when the test failed its log is shown.
func StartController(t *testing.T, flags ...string) *Controller {
	t.Helper()
	return startController(t, exec.Command(filepath.Join(Root(t), "bin", "clusterregistry-controller"), flags...)) //nolint:gosec,noctx // it outlives the test's context
}

// StartControllerTrusting is StartController where the CAs of a file are the system's.
func StartControllerTrusting(t *testing.T, cas string, flags ...string) *Controller {
	t.Helper()
	cmd := exec.Command(filepath.Join(Root(t), "bin", "clusterregistry-controller"), flags...) //nolint:gosec,noctx // it outlives the test's context
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+cas)
	return startController(t, cmd)
}

// StartControllerIn is StartController in the second place of a network.
func StartControllerIn(t *testing.T, network *Network, flags ...string) *Controller {
	t.Helper()
	return startController(t, network.Command(filepath.Join(Root(t), "bin", "clusterregistry-controller"), flags...))
}

func startController(t *testing.T, cmd *exec.Cmd) *Controller {
	t.Helper()
	c := &Controller{t: t, cmd: cmd, log: &lockedBuffer{}, done: make(chan error, 1)}
	for _, flag := range []string{"--metrics-bind-address=", "--health-probe-bind-address="} {
		if !slices.ContainsFunc(cmd.Args, func(arg string) bool { return strings.HasPrefix(arg, flag) }) {
			cmd.Args = append(cmd.Args, flag+"0")
		}
	}
	cmd.Stdout, cmd.Stderr = c.log, c.log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the controller: %v; \"make build\" builds it", err)
	}
	go func() { c.done <- cmd.Wait() }()
	t.Cleanup(func() {
		if c.cmd != nil {
			c.end(syscall.SIGTERM, "")
		}
		if t.Failed() {
			t.Logf("a controller's log:\n%s", c.log.String())
		}
	})
	return c
}

// Pause stops the controller as a machine does that hangs. The function that is returned
// lets it continue.
func (c *Controller) Pause() (resume func()) {
	c.t.Helper()
	return pause(c.t, c.cmd.Process.Pid)
}

// Kill ends the controller as a power cut would.
func (c *Controller) Kill() {
	c.t.Helper()
	c.end(syscall.SIGKILL, "signal: killed")
}

// Stop ends the controller as a Deployment would: it hands its Lease over.
func (c *Controller) Stop() {
	c.t.Helper()
	c.end(syscall.SIGTERM, "")
}

// end sends the controller a signal, and expects that it ends with an error of the given
// text; "" is for none.
func (c *Controller) end(signal syscall.Signal, want string) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(signal); err != nil {
		c.t.Errorf("the controller had ended: %v", err)
	}
	got := ""
	if err := <-c.done; err != nil {
		got = err.Error()
	}
	if got != want {
		c.t.Errorf("the controller got %s, and ended with %q, want %q", signal, got, want)
	}
	c.cmd = nil
}

// Relay passes connections on from an address of this machine that is not loopback.
type Relay struct {
	// Address is where it listens, host and port.
	Address string

	t        *testing.T
	to       string
	mu       sync.Mutex
	listener net.Listener
}

// StartRelay starts a relay to an address; it ends with the test. A machine that has
// nothing but loopback fails the test.
func StartRelay(t *testing.T, to string) *Relay {
	t.Helper()
	r := &Relay{Address: net.JoinHostPort(outside(t), "0"), t: t, to: to}
	r.Open()
	t.Cleanup(r.Close)
	return r
}

// outside returns an IPv4 address of this machine that other machines could use.
func outside(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Fatal("this machine has no IPv4 address but loopback, which the controller refuses to connect to: bring up a network interface")
	return ""
}

// Open has the relay listen, at the address that it had before.
func (r *Relay) Open() {
	r.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", r.Address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.listener, r.Address = listener, listener.Addr().String()
	r.mu.Unlock()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go r.pass(conn)
		}
	}()
}

// Close has connections refused.
func (r *Relay) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.listener.Close()
}

func (r *Relay) pass(from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.to)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}
