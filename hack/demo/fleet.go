package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// defaultHost is the cluster of "make demo".
const defaultHost = "registry"

// Providers of clusters: local has room for others beside one, and an existing one is not ours to
// remove.
const (
	local    = "local"
	existing = "existing"
)

// member is a cluster that joins the registry.
type member struct {
	// name is its name in the registry, and local that of the local cluster, which is
	// also the context of its kubeconfig.
	name, local, display, labels string
}

// kubeconfig is its administrator's.
func (m member) kubeconfig() string { return filepath.Join(clusters, m.local, "kubeconfig") }

// user is the administrator in the fleet's kubeconfig.
func (m member) user() string { return "admin@" + m.name }

// fleet is the host cluster and what joins its registry.
type fleet struct {
	// host is the host cluster's name, and provider what made it.
	host, provider string
	// members are control planes without nodes, on the host cluster's network. There
	// are none where the host cluster is not of the local provider.
	members []member
}

// newFleet returns the fleet of the host cluster of the given name.
func newFleet(host string) (fleet, error) {
	f := fleet{host: host}
	provider, err := os.ReadFile(filepath.Join(clusters, host, "provider"))
	if errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("there is no cluster %q here; make cluster NAME=%s makes one", host, host)
	}
	if f.provider = strings.TrimSpace(string(provider)); err != nil || f.provider != local {
		return f, err
	}
	prefix := ""
	if host != defaultHost {
		prefix = host + "-"
	}
	f.members = []member{
		{"east", prefix + "east", "East", "region=eu,tier=gold"},
		{"west", prefix + "west", "West", "region=us,tier=silver"},
	}
	return f, nil
}

// kubeconfig is the fleet's.
func (f fleet) kubeconfig() string { return filepath.Join(clusters, f.host, "fleet.kubeconfig") }

// show brings the fleet together, and shows what the registry knows of it.
func (f fleet) show(ctx context.Context, s shell) error {
	for _, step := range []func(context.Context, shell) error{f.join, f.list, f.publish, f.outage, f.signIn, f.after, f.finish} {
		if err := step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// join brings the members up and enters them in the registry.
func (f fleet) join(ctx context.Context, s shell) error {
	if len(f.members) == 0 {
		s.say("The registry has the host cluster alone: only the local provider (make cluster PROVIDER=local) has room for more clusters beside it.\nOne of your own joins with: kubectl registry join NAME --cluster-context CONTEXT")
		return nil
	}
	s.say("Two more clusters: control planes without nodes, at addresses that the host cluster's pods reach.")
	for _, m := range f.members {
		if err := s.run(ctx, m.up(f.host)...); err != nil {
			return err
		}
	}
	s.say("They join the registry. Each is asked who it is; its credentials stay where they are.")
	for _, m := range f.members {
		if err := s.run(ctx, "kubectl", "registry", "join", m.name, "--cluster-kubeconfig="+m.kubeconfig(), "--cluster-context="+m.local,
			"--display-name="+m.display, "--label="+m.labels); err != nil {
			return err
		}
	}
	return nil
}

func (m member) up(host string) []string {
	return []string{"bin/cluster", "up", "--name=" + m.local, "--nodes=0", "--beside=" + host}
}

// list waits until each cluster is available, and lists them.
func (f fleet) list(ctx context.Context, s shell) error {
	s.say("The controller has entered the host cluster, and checks them all.")
	if err := s.run(ctx, "kubectl", "wait", "crc/host", "--for=create", "--timeout=2m"); err != nil {
		return err
	}
	wait := []string{"kubectl", "wait", "--for=condition=Available", "--timeout=2m", "crc/host"}
	for _, m := range f.members {
		wait = append(wait, "crc/"+m.name)
	}
	for _, args := range [][]string{
		{"kubectl", "patch", "crc", "host", "--type=merge", "-p", `{"metadata":{"labels":{"region":"eu"}},"spec":{"displayName":"Host"}}`},
		wait,
		{"kubectl", "get", "crc"},
		{"kubectl", "get", "crc", "-l", "region=eu", "-o", "wide"},
		{"kubectl", "registry", "clusters", "--by=region"},
	} {
		if err := s.run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

var (
	isFalse = regexp.MustCompile(`\sFalse\s`)
	isTrue  = regexp.MustCompile(`\sTrue\s`)
)

// outage stops a member for a moment.
func (f fleet) outage(ctx context.Context, s shell) error {
	if len(f.members) == 0 {
		return nil
	}
	m := f.members[0]
	watch := []string{"kubectl", "get", "crc", m.name, "--watch", "--output-watch-events"}
	s.say(m.display + "'s control plane stops. Anyone who watches learns of it: after three failed checks, AVAILABLE is False.")
	if err := s.watch(ctx, watch, []string{"bin/cluster", "stop", "--name=" + m.local}, isFalse); err != nil {
		return err
	}
	s.say("What needs attention comes first, with the reason and the next step. The exit code is 4 then, for scripts.")
	if err := s.run(ctx, "kubectl", "registry", "status"); !exited(err, 4) {
		return fmt.Errorf("kubectl registry status finds nothing wrong, or fails, while %s is stopped: %w", m.name, err)
	}
	s.say("It comes back.")
	return s.watch(ctx, watch, m.up(f.host), isTrue)
}

// exited reports whether a command ended with the given code.
func exited(err error, code int) bool {
	ended := (*exec.ExitError)(nil)
	return errors.As(err, &ended) && ended.ExitCode() == code
}

// signIn makes the fleet's kubeconfig and adds who the reader is.
func (f fleet) signIn(ctx context.Context, s shell) error {
	s.say("One kubeconfig for the fleet. Anyone who may write an entry chooses where you send credentials, so each is shown and has to be accepted.")
	merge := []string{"kubectl", "registry", "kubeconfig", "--all", "--merge=" + f.kubeconfig()}
	shown, err := s.read(ctx, append(slices.Clone(merge), "--dry-run=client")...)
	if err != nil {
		return err
	}
	digest := regexp.MustCompile(`sha256:[0-9a-f]{64}\b`).FindString(shown)
	if digest == "" {
		return fmt.Errorf("%s shows no digest", strings.Join(merge, " "))
	}
	if err := s.run(ctx, append(merge, "--accept="+digest)...); err != nil {
		return err
	}
	if len(f.members) == 0 {
		return nil
	}
	s.say("It has no credentials: who you are in a cluster is between you and the cluster. Here, you have an administrator's certificate for each.")
	for _, m := range f.members {
		pki := filepath.Join(clusters, m.local, "pki")
		for _, args := range [][]string{
			{"set-credentials", m.user(), "--embed-certs", "--client-certificate=" + filepath.Join(pki, "admin.crt"), "--client-key=" + filepath.Join(pki, "admin.key")},
			{"set-context", m.name, "--user=" + m.user()},
		} {
			if err := s.run(ctx, append([]string{"kubectl", "--kubeconfig=" + f.kubeconfig(), "config"}, args...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// after says what to do afterwards, and how to remove everything. What the demo ends
// with comes later: the fleet.
func (f fleet) after(_ context.Context, s shell) error {
	kubeconfig, err := filepath.Abs(os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	down, goes := "make cluster-down", "the clusters, and with them the data"
	if f.host != defaultHost {
		down += " NAME=" + f.host
	}
	if f.provider == existing {
		goes = "the copy of the kubeconfig; the cluster stays, with the data and cert-manager"
	}
	s.say(fmt.Sprintf(`To go on afterwards:
  export KUBECONFIG=%s PATH=%s:$PATH
  kubectl get crc -o wide
  kubectl explain crc.spec
  kubectl get clusterprofiles -A
  kubectl registry diagnose
and to remove it all:
  kubectl delete creg fleet   # its data stays, and a new registry of that name takes it over
  make uninstall              # the operator
  kubectl delete -f `+inventoryFile+`; kubectl delete crd clusterprofiles.multicluster.x-k8s.io
  %-26s  # %s`, kubeconfig, strings.Join(s.path, ":"), down, goes))
	return nil
}

// finish shows the fleet, and calls a member through its kubeconfig.
func (f fleet) finish(ctx context.Context, s shell) error {
	s.say("The fleet, and a cluster of it.")
	if err := s.run(ctx, "kubectl", "wait", "creg/fleet", "--for=condition=Ready", "--timeout=2m"); err != nil {
		return err
	}
	if err := s.run(ctx, "kubectl", "registry", "status"); err != nil || len(f.members) == 0 {
		return err
	}
	return s.run(ctx, "kubectl", "--kubeconfig="+f.kubeconfig(), "--context="+f.members[0].name, "get", "namespaces")
}
