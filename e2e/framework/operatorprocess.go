package framework

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// OperatorUser is whom the host knows the operator as.
const OperatorUser = "system:serviceaccount:" + OperatorNamespace + ":" + operatorName

// Operator is a running clusterregistry-operator of this checkout.
type Operator struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *lockedBuffer
	done chan error
}

// InstallOperator brings all that the operator needs to a host, but not the
// operator: its API and its permissions.
func InstallOperator(t *testing.T, kubectl *Kubectl) {
	t.Helper()
	dir := filepath.Join(Root(t), "manifests", "operator")
	kubectl.Run("apply", "-f", filepath.Join(dir, "crd"))
	for _, file := range []string{"namespace.yaml", "serviceaccount.yaml", "clusterrole.yaml", "roles.yaml", "admission-reader.yaml", "controller.yaml"} {
		kubectl.Run("apply", "-f", filepath.Join(dir, file))
	}
	kubectl.Established("-f", filepath.Join(dir, "crd"))
}

// StartOperator starts the operator outside of the host, as its service account
// and with the given flags. Registries may be aggregated in all namespaces, as in
// manifests/operator, unless a flag says otherwise. It ends with the test, which fails when the operator
// ended by itself before, or panicked.
func StartOperator(t *testing.T, host *Host, flags ...string) *Operator {
	t.Helper()
	return startOperator(t, host, nil, flags)
}

// StartOperatorAsking is StartOperator with a nameserver that no one else asks, in a mount
// namespace where /etc/resolv.conf is another file: Linux, and root.
func StartOperatorAsking(t *testing.T, host *Host, nameserver netip.Addr, flags ...string) *Operator {
	t.Helper()
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, "nameserver %s\n", nameserver), 0o600); err != nil {
		t.Fatal(err)
	}
	return startOperator(t, host, []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, file}, flags)
}

// startOperator starts it by a command that becomes it, if one is given.
func startOperator(t *testing.T, host *Host, by, flags []string) *Operator {
	t.Helper()
	o := &Operator{t: t, log: &lockedBuffer{}, done: make(chan error, 1)}
	command := slices.Concat(by, []string{filepath.Join(Root(t), "bin", "clusterregistry-operator"),
		"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"}, flags)
	o.cmd = exec.Command(command[0], command[1:]...) //nolint:noctx // it outlives the test's context
	kubeconfig := host.Kubeconfig(OperatorUser, "system:serviceaccounts", "system:serviceaccounts:"+OperatorNamespace)
	o.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAMESPACE="+OperatorNamespace, "AGGREGATED_NAMESPACES=*")
	o.cmd.Stdout, o.cmd.Stderr = o.log, o.log
	if err := o.cmd.Start(); err != nil {
		t.Fatalf("start the operator: %v; \"make build\" builds it", err)
	}
	go func() { o.done <- o.cmd.Wait() }()
	t.Cleanup(func() {
		if o.cmd != nil {
			o.Kill()
		}
		if strings.Contains(o.log.String(), "panic") {
			t.Error("the operator panicked")
		}
		if t.Failed() {
			t.Logf("the operator's log:\n%s", o.log.String())
		}
	})
	return o
}

// Kill ends the operator as a power cut would.
func (o *Operator) Kill() {
	o.t.Helper()
	if err := o.end(syscall.SIGKILL); err == nil || !strings.Contains(err.Error(), "killed") {
		o.t.Errorf("the operator had ended before it was killed: %v", err)
	}
}

// Stop lets the operator end in order.
func (o *Operator) Stop() {
	o.t.Helper()
	if err := o.end(syscall.SIGTERM); err != nil {
		o.t.Errorf("the operator was told to end, and ended with %v", err)
	}
}

// Ended waits until the operator has ended unasked, with an error, and with the given words as
// the last ones of its log.
func (o *Operator) Ended(saying string) {
	o.t.Helper()
	if err := o.wait("and should end"); err == nil {
		o.t.Error("the operator ended without an error")
	}
	lines := strings.Split(strings.TrimSpace(o.log.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, saying) {
		o.t.Errorf("the operator ended with %q in place of %q", last, saying)
	}
}

func (o *Operator) end(signal syscall.Signal) error {
	o.t.Helper()
	_ = o.cmd.Process.Signal(signal) // it may have ended, of which done tells
	return o.wait("after signal " + signal.String())
}

// wait returns what the operator's process ends with.
func (o *Operator) wait(why string) error {
	o.t.Helper()
	o.cmd = nil
	select {
	case err := <-o.done:
		return err
	case <-time.After(Patience):
		o.t.Fatalf("the operator continues %s", why)
	}
	return nil
}

// Said returns whether the operator's log contains the text.
func (o *Operator) Said(text string) bool { return strings.Contains(o.log.String(), text) }
