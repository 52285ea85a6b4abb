// Command demo is the last part of "make demo": on the cluster of $KUBECONFIG,
// where the operator runs, it brings up the registry of
// manifests/samples/aggregated-ha.yaml, puts clusters into it and shows what can
// be done with them. It prints each command before what the command prints.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterregistry/operator/hack/access"
	"github.com/clusterregistry/operator/hack/cluster/addons"
	"github.com/clusterregistry/operator/hack/cluster/components"
)

// The files that are applied, from the top of the repository.
const (
	registryFile = "manifests/samples/aggregated-ha.yaml"
	clustersFile = "hack/demo/clusters.yaml"
	hostFile     = "bin/demo/host.yaml"
)

func main() {
	logf.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	c, config, err := access.New()
	if err != nil {
		return err
	}
	installed, err := addons.CertManagerInstalled(ctx, c)
	if err != nil {
		return err
	}
	if !installed {
		return errors.New("the cluster has no cert-manager, which issues the registry's certificates; install it (https://cert-manager.io/docs/installation) and run make demo again")
	}
	kubectl, err := findKubectl(ctx, out)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\nA registry: two API servers, three members of etcd.")
	if err := kubectl.run(ctx, "apply", "-f", registryFile); err != nil {
		return err
	}
	if err := untilReady(ctx, c, out); err != nil {
		return err
	}
	if err := kubectl.run(ctx, "get", "creg", "fleet"); err != nil {
		return err
	}
	if err := show(ctx, kubectl, config); err != nil {
		return err
	}
	return goOn(out, kubectl.program)
}

// show puts clusters into the registry, the host itself among them, and reads
// them in the ways that its users will.
func show(ctx context.Context, kubectl shell, config *rest.Config) error {
	entry, err := hostEntry(config)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(hostFile), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(hostFile, entry, 0o644); err != nil {
		return err
	}
	kubectl.say("Clusters in it: this one, and two that are made up.")
	for _, args := range [][]string{
		{"apply", "-f", hostFile, "-f", clustersFile},
		{"get", "crc"},
	} {
		if err := kubectl.run(ctx, args...); err != nil {
			return err
		}
	}
	kubectl.say("Labels select, as with any Kubernetes object.")
	if err := kubectl.run(ctx, "get", "crc", "-l", "region=eu", "-L", "region,tier"); err != nil {
		return err
	}
	kubectl.say("Whoever watches learns of a change at once.")
	if err := kubectl.watch(ctx,
		[]string{"get", "crc", "east", "-L", "tier", "--watch", "--output-watch-events"},
		[]string{"label", "crc", "east", "tier=gold", "--overwrite"}); err != nil {
		return err
	}
	kubectl.say("What the operator says of the registry.")
	return kubectl.run(ctx, "get", "creg", "fleet", "-o", `jsonpath={range .status.conditions[*]}{.type}: {.status}, {.message}{"\n"}{end}`)
}

// findKubectl returns the kubectl of the newest Kubernetes that the local
// cluster can run.
func findKubectl(ctx context.Context, out io.Writer) (shell, error) {
	cmd := exec.CommandContext(ctx, "bin/cluster", "binaries", "kubernetes", components.KubernetesVersions[0], "kubectl")
	cmd.Stderr = out
	dir, err := cmd.Output()
	if err != nil {
		return shell{}, fmt.Errorf("%s: %w; make cluster-command builds it", cmd, err)
	}
	return shell{program: filepath.Join(strings.TrimSpace(string(dir)), "kubectl"), out: out}, nil
}

// goOn says what to do next, and how to remove everything.
func goOn(out io.Writer, kubectl string) error {
	kubeconfig, err := filepath.Abs(os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	path := ""
	if _, err := exec.LookPath("kubectl"); err != nil {
		path = " PATH=$PATH:" + filepath.Dir(kubectl)
	}
	fmt.Fprintf(out, `
Go on:
  export KUBECONFIG=%s%s
  kubectl get crc -o wide
  kubectl explain crc.spec
  kubectl describe creg fleet
Remove it all:
  kubectl delete creg fleet   # its data stays, and a new registry of that name takes it over
  make uninstall              # the operator
  make cluster-down           # the cluster, and with it the data
`, kubeconfig, path)
	return nil
}
