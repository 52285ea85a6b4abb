// Command demo is the last part of "make demo": on the cluster of the given name,
// that of $KUBECONFIG, where the operator runs, it brings up the registry of
// manifests/samples/aggregated-ha.yaml with its controller, two more clusters that join
// it, shows them to programs that read ClusterProfiles, and how the registry follows what
// happens to them. It prints each command
// before what the command prints, and can be run again.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterregistry/operator/hack/access"
	"github.com/clusterregistry/operator/hack/cluster/addons"
	"github.com/clusterregistry/operator/hack/cluster/components"
)

// Paths from the top of the repository.
const (
	registryFile = "manifests/samples/aggregated-ha.yaml"
	clusters     = ".cluster"
	programs     = "bin"
)

// controllers turns on what fills the list: the host's own entry, and a check of each
// cluster every five seconds, so that the demo is short, where the default is every minute; and
// what publishes it.
const controllers = `{"spec":{"controllers":{"registerHost":{"name":"host"},"health":{"periodSeconds":5},"exports":[{"format":"ClusterProfile","namespace":"` + inventory + `"}]}}}`

func main() {
	logf.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo NAME, where NAME is that of the cluster of $KUBECONFIG; \"make demo\" runs it")
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, host string, out io.Writer) error {
	c, _, err := access.New()
	if err != nil {
		return err
	}
	f, err := newFleet(host)
	if err != nil {
		return err
	}
	s, err := newShell(ctx, f, out)
	if err != nil {
		return err
	}
	if err := certManager(ctx, c, s); err != nil {
		return err
	}
	if err := open(ctx, s); err != nil {
		return err
	}
	s.say("A registry: two API servers, three etcd members, and a controller that enters the host cluster, checks every cluster and publishes them.")
	for _, args := range [][]string{
		{"kubectl", "apply", "-f", registryFile},
		{"kubectl", "patch", "creg", "fleet", "--type=merge", "-p", controllers},
	} {
		if err := s.run(ctx, args...); err != nil {
			return err
		}
	}
	if err := untilReady(ctx, c, out); err != nil {
		return err
	}
	if err := s.run(ctx, "kubectl", "get", "creg", "fleet"); err != nil {
		return err
	}
	if err := f.show(ctx, s); err != nil {
		return fmt.Errorf("%w\nlook at\n  kubectl registry diagnose\n  kubectl registry status\n  kubectl get crc -o yaml\n  kubectl logs deployment/fleet-controller --all-pods", err)
	}
	return nil
}

// certManager installs cert-manager where the cluster has none, as it is published. The local
// cluster has it, built from source.
func certManager(ctx context.Context, c client.Client, s shell) error {
	installed, err := addons.CertManagerInstalled(ctx, c)
	if err != nil || installed {
		return err
	}
	s.say("The cluster has no cert-manager, which issues the registry's certificates. Here it is.")
	version := components.CertManager.Version
	if err := s.run(ctx, "kubectl", "apply", "-f", "https://github.com/cert-manager/cert-manager/releases/download/"+version+"/cert-manager.yaml"); err != nil {
		return err
	}
	return addons.WaitCertManager(ctx, c)
}

// newShell returns a shell with the plugin and a kubectl: where the local cluster runs, that of the
// newest Kubernetes that it can run, and elsewhere the one on $PATH.
func newShell(ctx context.Context, f fleet, out io.Writer) (shell, error) {
	plugins, err := filepath.Abs(programs)
	if err != nil {
		return shell{}, err
	}
	if _, err := os.Stat(filepath.Join(plugins, "kubectl-registry")); err != nil {
		return shell{}, fmt.Errorf("the plugin is missing: %w; make build builds it", err)
	}
	if f.provider != local {
		if _, err := exec.LookPath("kubectl"); err != nil {
			return shell{}, fmt.Errorf("%w; install it (https://kubernetes.io/docs/tasks/tools) and run make demo again", err)
		}
		return shell{path: []string{plugins}, out: out}, nil
	}
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "cluster"), "binaries", "kubernetes", components.KubernetesVersions[0], "kubectl")
	cmd.Stderr = out
	dir, err := cmd.Output()
	if err != nil {
		return shell{}, fmt.Errorf("%s: %w; make cluster-command builds it", cmd, err)
	}
	return shell{path: []string{strings.TrimSpace(string(dir)), plugins}, out: out}, nil
}
