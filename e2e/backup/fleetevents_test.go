package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/framework/fleetevents"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/version"
)

// followed is a registry that the example of informers follows.
type followed struct {
	t        *testing.T
	e        *framework.Env
	store    *store
	registry *operatorv1alpha1.ClusterRegistry
	program  *fleetevents.Program
	lives    []fleetevents.Life
}

// TestMatrixFleetEvents runs the example of informers over an aggregated registry, through the
// host cluster, that is upgraded, has the CA of its servers rotated, and is restored from a
// backup: of what was written it says each event once.
func TestMatrixFleetEvents(t *testing.T) {
	f := follow(t, "aggregated-ha.yaml", framework.ClusterKubeconfig)
	f.writing("upgraded", f.upgrade)
	f.writing("rotated", func() {
		f.e.Change(f.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.TLS.Rotation.Serving = 2 })
		f.rotated()
	})
	f.restore()
}

// TestMatrixFleetEventsIndependent is TestMatrixFleetEvents for an independent registry. The
// example has to follow the kubeconfig that the operator publishes: in the end neither the
// first CA of the servers nor the first address of the registry nor the first certificate of
// the administrator is good for anything.
func TestMatrixFleetEventsIndependent(t *testing.T) {
	f := follow(t, "independent-nodeport.yaml", nil)
	f.writing("upgraded", f.upgrade)
	f.writing("trusted", func() {
		f.e.Change(f.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.TLS.Rotation.Serving = 2 })
		f.e.WaitCondition(f.registry, operatorv1alpha1.ConditionCertificatesReady, metav1.ConditionTrue, operatorv1alpha1.ReasonDropPending, "spec.tls.rotation.drop.serving to 1")
	})
	// The writers begin with the kubeconfig as it is now, the example with what it was.
	f.writing("rotated", func() {
		f.e.Change(f.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.TLS.Rotation.Drop.Serving = 1 })
		f.rotated()
	})
	f.restart()
	f.restore()
}

// follow installs a highly available registry of the release before the newest, and starts the
// example with the kubeconfig that it is given, or that the operator publishes.
func follow(t *testing.T, sample string, kubeconfig func(*testing.T) string) *followed {
	t.Helper()
	e := framework.New(t).WithOperator()
	f := &followed{t: t, e: e, store: startStore(t, e)}
	f.registry = f.sample(sample)
	f.registry.Spec.Version = operatorv1alpha1.Version(before(t))
	e.Install(f.registry)
	e.WaitReady(f.registry)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if kubeconfig != nil {
		path = kubeconfig(t)
	} else {
		f.mount(path)
	}
	f.program = fleetevents.Start(t, path)
	return f
}

// sample is the registry with three members and two servers or more.
func (f *followed) sample(sample string) *operatorv1alpha1.ClusterRegistry {
	registry := f.e.Sample(sample)
	registry.Spec.Server.Replicas, registry.Spec.Etcd.Replicas = 2, 3
	if registry.Spec.Server.Service != nil {
		registry.Spec.Server.Service.NodePort = 0
	}
	return registry
}

// before is the release from which the newest one is reached.
func before(t *testing.T) string {
	t.Helper()
	releases, err := version.Releases()
	if err != nil || len(releases) < 2 {
		t.Fatalf("there are the releases %v, %v", releases, err)
	}
	return releases[len(releases)-2].Version
}

// mount keeps a file as kubelet would that mounts the Secret with the registry's kubeconfig:
// replaced as a whole when the Secret changes, and left as it is while there is none.
func (f *followed) mount(path string) {
	f.t.Helper()
	key := client.ObjectKey{Namespace: f.registry.Namespace, Name: f.registry.Status.KubeconfigSecretRef.Name}
	copied := func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := f.e.Client.Get(ctx, key, secret); err != nil {
			return err
		}
		content := secret.Data["kubeconfig"]
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
			return nil
		}
		if len(content) == 0 {
			return fmt.Errorf("Secret %s has no kubeconfig", key)
		}
		return errors.Join(os.WriteFile(path+".next", content, 0o600), os.Rename(path+".next", path))
	}
	if err := copied(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(f.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ticks := time.NewTicker(time.Second); ctx.Err() == nil; {
			select {
			case <-ctx.Done():
				ticks.Stop()
			case <-ticks.C:
				_ = copied(ctx) // kubelet tries again, too; what is never copied the test misses
			}
		}
	})
	f.t.Cleanup(func() { stop(); running.Wait() })
}

// clusters returns a client of the registry as it is reached now.
func (f *followed) clusters() typed.ClusterInterface {
	f.t.Helper()
	clients, err := versioned.NewForConfig(f.e.RegistryConfig(f.registry))
	if err != nil {
		f.t.Fatal(err)
	}
	return clients.ClusterregistryV1beta1().Clusters()
}

// writing does something while clusters are written, before and after it as well, and compares
// what the example has said since the last restore with all of that.
func (f *followed) writing(name string, do func()) {
	f.t.Helper()
	writers := fleetevents.StartWriters(f.t, f.e.RegistryConfig(f.registry), name)
	writers.WaitMore(f.t)
	do()
	writers.WaitMore(f.t)
	writers.WaitLong(f.t)
	f.lives = append(f.lives, writers.Stop(f.t)...)
	f.program.Await(f.t, f.clusters())
	f.program.Check(f.t, f.lives)
}

// upgrade brings the registry to the newest release, which has backups.
func (f *followed) upgrade() {
	f.t.Helper()
	newest := f.e.Sample("aggregated-ha.yaml").Spec.Version
	f.e.Change(f.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Version = newest })
	f.e.WaitReady(f.registry)
	if f.registry.Status.Version != string(newest) {
		f.t.Fatalf("it is ready with %s", f.registry.Status.Version)
	}
}

// rotated waits until the servers' CA is of the second generation alone.
func (f *followed) rotated() {
	f.t.Helper()
	f.e.Eventually("the second generation of the servers' CA to be the only one", func(ctx context.Context) error {
		if err := f.e.Get(ctx, f.registry.Name, f.registry); err != nil {
			return err
		}
		var uses []string
		signs := false
		for _, c := range f.registry.Status.Certificates {
			if strings.HasPrefix(c.Name, f.registry.Name+contract.ServingCASuffix) {
				uses = append(uses, fmt.Sprintf("%s: %s", c.Name, c.Use))
				signs = signs || c.Generation == 2 && c.Use == operatorv1alpha1.CASigning
			}
		}
		if !signs || len(uses) != 1 || f.registry.Status.Operation != nil {
			return fmt.Errorf("there are %v, operation %+v", uses, f.registry.Status.Operation)
		}
		return nil
	})
	f.e.WaitReady(f.registry)
}

// restart replaces all servers, so that whoever was connected has to connect again, with what
// is trusted by then.
func (f *followed) restart() {
	f.t.Helper()
	var pods corev1.PodList
	if err := f.e.Client.List(f.t.Context(), &pods, client.InNamespace(f.registry.Namespace), client.MatchingLabels{operatorv1alpha1.LabelInstance: f.registry.Name, operatorv1alpha1.LabelComponent: "server"}); err != nil || len(pods.Items) == 0 {
		f.t.Fatalf("there are %d servers, %v", len(pods.Items), err)
	}
	for i := range pods.Items {
		if err := f.e.Client.Delete(f.t.Context(), &pods.Items[i]); err != nil {
			f.t.Fatal(err)
		}
	}
	f.e.Eventually("all servers to be other ones", func(ctx context.Context) error {
		for _, old := range pods.Items {
			if err := f.e.Client.Get(ctx, client.ObjectKeyFromObject(&old), &corev1.Pod{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is still there: %w", old.Name, err)
			}
		}
		if err := f.e.Get(ctx, f.registry.Name, f.registry); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(f.registry.Status.Conditions, operatorv1alpha1.ConditionReady) {
			return errors.New("the registry is not ready")
		}
		_, err := f.clusters().List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
	f.writing("restarted", func() {})
}

// restore takes a backup while clusters are written, deletes the registry with its data, and
// has another one of its name begin with the backup.
func (f *followed) restore() {
	t, e := f.t, f.e
	t.Helper()
	e.Change(f.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Backup = &operatorv1alpha1.Backup{Schedule: never, Store: f.store.spec(), Retention: operatorv1alpha1.BackupRetention{KeepLast: keepLast}}
	})
	e.WaitReady(f.registry)
	var b *operatorv1alpha1.ClusterRegistryBackup
	f.writing("saved", func() {
		b = request(e, f.registry, "restored", operatorv1alpha1.BackupDeletionPolicyRetain)
		waitPhase(e, b, operatorv1alpha1.BackupCompleted)
	})
	clusters := f.program.Await(t, f.clusters())
	f.program.Restoring(t)
	f.lives = nil

	e.Change(f.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.DeletionPolicy = operatorv1alpha1.DeletionPolicyDelete
	})
	e.Remove(f.registry)
	spec := f.store.spec()
	again := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Name: f.registry.Name, Namespace: f.registry.Namespace}}
	f.registry.Spec.DeepCopyInto(&again.Spec)
	again.Spec.DeletionPolicy, again.Spec.TLS.Rotation = "", operatorv1alpha1.Rotation{}
	again.Spec.RestoreFrom = &operatorv1alpha1.RestoreFrom{Store: &spec, Lineage: b.Status.Lineage, Latest: new(true)}
	e.Install(again)
	e.WaitReady(again)
	f.registry = again
	f.program.CheckRestored(t, clusters, f.clusters())
	f.program.Restoring(t)
	f.writing("restored", func() {})
}
