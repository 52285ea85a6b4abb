package upgrade

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/version"
)

// TestMatrixIndependent is TestUpgrade for the last step of a registry that clients
// reach without a host cluster in between.
func TestMatrixIndependent(t *testing.T) {
	e := framework.New(t).WithOperator()
	lastStep(t, e, "independent-nodeport.yaml", func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Server.Replicas, spec.Server.Service.NodePort = 2, 0
		spec.Etcd.Replicas = 3
	})
}

// TestMatrixExternalEtcd is the same for a registry whose etcd someone else runs, of
// which no snapshot is taken and nothing is replaced.
func TestMatrixExternalEtcd(t *testing.T) {
	e := framework.New(t).WithOperator()
	e.Apply("../install/etcd.yaml", map[string]string{"Namespace": e.Namespace, "Etcd": framework.FindImage(t, "etcd").Reference})
	e.Eventually("etcd to be ready", func(ctx context.Context) error { return e.PodReady(ctx, externalMember) })
	e.Eventually("the key pair that opens it", func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := e.Get(ctx, externalSecret, secret); err != nil {
			return err
		}
		if len(secret.Data[corev1.TLSCertKey]) == 0 || len(secret.Data["ca.crt"]) == 0 {
			return fmt.Errorf("Secret %s is not complete", externalSecret)
		}
		return nil
	})
	lastStep(t, e, "external-etcd.yaml", func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Mode = operatorv1alpha1.ModeAggregated
		spec.Server.Replicas = 2
		spec.Etcd.External.TLSSecretRef.Name = externalSecret
		spec.Etcd.External.Endpoints = []operatorv1alpha1.EtcdEndpoint{operatorv1alpha1.EtcdEndpoint(fmt.Sprintf("https://%s.etcd.%s.svc:2379", externalMember, e.Namespace))}
	})
}

const (
	// externalMember is the pod of the external etcd in e2e/install/etcd.yaml, and
	// externalSecret has the key pair that opens it.
	externalMember = "etcd-0"
	externalSecret = "right"
)

// lastStep brings a sample from the release before the last to the last, while its
// clients create, change, read, list, watch and delete: no request fails.
func lastStep(t *testing.T, e *framework.Env, sample string, change func(*operatorv1alpha1.ClusterRegistrySpec)) {
	t.Helper()
	releases := steps(t)
	before, to := releases[len(releases)-2], releases[len(releases)-1]
	registry := install(t, e, sample, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		change(spec)
		spec.Version = operatorv1alpha1.Version(before.Version)
	})
	clients := framework.StartLoad(t, e.RegistryConfig(registry), rate, load()...)
	clients.Mark("before")
	settle(t, clients, 10)
	clients.Mark("to " + to.Version)
	upgrade(t, e, registry, to.Version)
	checkUpgraded(t, e, registry, to)
	checkStored(t, e, registry, to)
	clients.Mark("after " + to.Version)
	settle(t, clients, 5)
	finish(t, e, registry, clients)
	checkOldClients(t, e, registry)
}

// checkEtcdUpgraded compares the etcd of an upgraded registry with its release. An
// external one is left alone.
func checkEtcdUpgraded(t *testing.T, registry *operatorv1alpha1.ClusterRegistry, release version.Release) {
	t.Helper()
	last := registry.Status.History[0]
	if registry.Spec.Etcd.External != nil {
		if last.Snapshot != "" || last.Message == "" {
			t.Errorf("the history does not say that an external etcd is left alone: %+v", last)
		}
		return
	}
	if registry.Status.EtcdVersion != release.Etcd {
		t.Errorf("etcd runs %s, not %s", registry.Status.EtcdVersion, release.Etcd)
	}
	if last.Snapshot == "" || last.SnapshotRevision == 0 {
		t.Errorf("the history tells of no snapshot: %+v", last)
	}
}

// phases are those that an upgrade of a registry goes through.
func phases(registry *operatorv1alpha1.ClusterRegistry) []operatorv1alpha1.OperationPhase {
	all := []operatorv1alpha1.OperationPhase{operatorv1alpha1.PhaseServer, operatorv1alpha1.PhaseVerification, operatorv1alpha1.PhaseStorageMigration}
	if registry.Spec.Etcd.External == nil {
		all = append(all, operatorv1alpha1.PhaseSnapshot, operatorv1alpha1.PhaseEtcd)
	}
	return all
}

// etcdctl runs that program on a member of a registry's etcd, again until it succeeds: it is to
// change nothing.
func etcdctl(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, args ...string) (out string) {
	run := func(ctx context.Context) (string, error) {
		return e.Etcdctl(ctx, registry.Status.Etcd.Members[0].Name, args...)
	}
	if registry.Spec.Etcd.External != nil {
		run = func(ctx context.Context) (string, error) {
			return e.Exec(ctx, externalMember, append([]string{"etcdctl", "--endpoints=https://localhost:2379", "--cacert=/tls/ca.crt", "--cert=/tls/tls.crt", "--key=/tls/tls.key"}, args...)...)
		}
	}
	e.Eventually("etcd to answer", func(ctx context.Context) (err error) {
		out, err = run(ctx)
		return err
	})
	return out
}
