package framework

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Kubectl is kubectl of one version for the user of one kubeconfig. It knows
// nothing of this computer's user, neither cache nor preferences, and leaves
// no file behind.
type Kubectl struct {
	t           *testing.T
	program     string
	kubeconfig  string
	stdin       string
	environment []string
	// after is true for clean-up.
	after bool
}

// NewKubectl returns kubectl of a pinned Kubernetes version.
func NewKubectl(t *testing.T, version, kubeconfig string) *Kubectl {
	t.Helper()
	dir := t.TempDir()
	return &Kubectl{t: t, program: Program(t, "kubernetes", version, "kubectl"), kubeconfig: kubeconfig, environment: []string{"HOME=" + dir, "TMPDIR=" + dir}}
}

// Stdin returns a kubectl that reads the given text.
func (k *Kubectl) Stdin(text string) *Kubectl {
	out := *k
	out.stdin = text
	return &out
}

// Environment returns a kubectl with the given variables (NAME=value) as well.
func (k *Kubectl) Environment(variables ...string) *Kubectl {
	out := *k
	out.environment = slices.Concat(k.environment, variables)
	return &out
}

// After returns a kubectl for clean-up, when the test's own context has ended.
func (k *Kubectl) After() *Kubectl {
	out := *k
	out.after = true
	return &out
}

// Run returns what kubectl prints. The test fails when the command does.
func (k *Kubectl) Run(args ...string) string {
	k.t.Helper()
	out, err := k.Try(args...)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// Established waits until the host serves custom resource definitions, which the arguments
// select. "kubectl wait" ends with an error on one whose status is still empty.
func (k *Kubectl) Established(args ...string) {
	k.t.Helper()
	Eventually(k.t, "custom resources to be served", func(context.Context) error {
		_, err := k.Try(append([]string{"wait", "--for=condition=Established", "--timeout=1m"}, args...)...)
		return err
	})
}

// Try returns what kubectl prints to its standard output; the error tells the
// command, and what it printed to its standard error.
func (k *Kubectl) Try(args ...string) (string, error) {
	ctx := k.t.Context()
	if k.after {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, Bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.program, append([]string{"--kubeconfig=" + k.kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), k.environment...)
	cmd.Stdin = strings.NewReader(k.stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
