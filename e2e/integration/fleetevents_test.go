package integration

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/framework/fleetevents"
)

// published is the kubeconfig of a registry where a pod has it: replaced as a whole.
type published struct {
	t        *testing.T
	registry *framework.Registry
	client   framework.Pair
	path     string
}

// trusting publishes that the registry's certificate is signed by one of the authorities.
func (p *published) trusting(authorities ...*framework.Authority) {
	p.t.Helper()
	config, err := clientcmd.LoadFromFile(p.registry.Kubeconfig(p.t, p.client))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.CertificateAuthorityData = nil
		for _, authority := range authorities {
			cluster.CertificateAuthorityData = slices.Concat(cluster.CertificateAuthorityData, authority.PEM)
		}
	}
	if err := clientcmd.WriteToFile(*config, p.path+".next"); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(p.path+".next", p.path); err != nil {
		p.t.Fatal(err)
	}
}

// TestFleetEvents runs the example of informers over a registry whose CA is rotated, whose
// server is replaced by another one, and whose etcd is restored from a snapshot: it says each
// event once. TestMatrixFleetEvents has that with the operator.
func TestFleetEvents(t *testing.T) {
	t.Parallel()
	const version = "v3.7.3"
	etcd := framework.StartEtcdVersion(t, version, 1)
	clients := framework.NewAuthority(t, "clients")
	flags := append([]string{"--mode=independent", "--permit-port-sharing", "--client-ca-file=" + clients.File}, etcd.Flags()...)
	registry := framework.StartRegistry(t, flags...)
	registry.WaitReady(t)
	root, before := clients.Issue("root", admins), registry.CA
	kubeconfig := &published{t: t, registry: registry, client: root, path: filepath.Join(t.TempDir(), "kubeconfig")}
	kubeconfig.trusting(before)
	program := fleetevents.Start(t, kubeconfig.path)

	// The CA is rotated as the operator does it: first both are trusted.
	after := framework.NewAuthority(t, "registry-ca")
	both := registry.Config(root)
	both.CAData = slices.Concat(before.PEM, after.PEM)
	writers := fleetevents.StartWriters(t, both, "rotated")
	kubeconfig.trusting(before, after)
	registry.Serving.Replace(after.Issue("registry", nil, "registry.default.svc", "localhost", "127.0.0.1"))
	writers.WaitLong(t)
	lives := writers.Stop(t)
	kubeconfig.trusting(after)
	registry.CA = after

	// A server of another release takes over: all connections are new ones.
	next := registry.StartReplica(t, flags...)
	registry.Signal(t, syscall.SIGTERM)
	framework.Eventually(t, "the first server to have ended", func(context.Context) error {
		if err := syscall.Kill(registry.PID(), 0); err == nil {
			return errors.New("it runs")
		}
		return nil
	})
	next.WaitReady(t)
	writers = fleetevents.StartWriters(t, next.Config(root), "replaced")
	writers.WaitLong(t)
	snapshots := t.TempDir()
	save(t, etcd, snapshots, "s", "")
	writers.WaitMore(t)
	lives = append(lives, writers.Stop(t)...)
	clusters := program.Await(t, betaOf(t, next.Config(root)))
	program.Check(t, lives)

	program.Restoring(t)
	next.Signal(t, syscall.SIGKILL)
	restoreSingle(t, etcd, version, filepath.Join(snapshots, "s.db"))
	restored := next.StartReplica(t, flags...)
	restored.WaitReady(t)
	program.CheckRestored(t, clusters, betaOf(t, restored.Config(root)))
	program.Restoring(t)
	writers = fleetevents.StartWriters(t, restored.Config(root), "restored")
	writers.WaitLong(t)
	lives = writers.Stop(t)
	program.Await(t, betaOf(t, restored.Config(root)))
	program.Check(t, lives)
}

// restoreSingle has an etcd of one member begin again with a snapshot, at revisions that it
// never had.
func restoreSingle(t *testing.T, etcd *framework.Etcd, version, snapshot string) {
	t.Helper()
	list, err := etcd.Client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	member, dir := list.Members[0], etcd.DataDirs[0]
	etcd.Kill(0)
	if err := os.Rename(dir, dir+"-before"); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), framework.Program(t, "etcd", version, "etcdutl"), "snapshot", "restore", snapshot, "--data-dir="+dir, "--name="+member.Name,
		"--initial-cluster="+member.Name+"="+member.PeerURLs[0], "--initial-advertise-peer-urls="+member.PeerURLs[0], "--bump-revision=1000000000", "--mark-compacted").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	etcd.Start(0)
}
