package backup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// rate is how many requests clients send in a second.
const rate = 200

// keepLast is how many backups the tests' registries keep.
const keepLast = 3

// registryWith returns a registry with users of its own that is backed up to a store.
func registryWith(e *framework.Env, s *store, members int32, schedule string) *operatorv1alpha1.ClusterRegistry {
	registry := e.Sample("independent-nodeport.yaml")
	registry.Spec.Server.Service.NodePort = 0
	registry.Spec.Etcd.Replicas = members
	registry.Spec.Backup = &operatorv1alpha1.Backup{Schedule: schedule, Store: s.spec(), Retention: operatorv1alpha1.BackupRetention{KeepLast: keepLast}}
	return registry
}

// never is a schedule that has no time within a test.
const never = "0 0 29 2 *"

// request creates a backup by hand.
func request(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, name string, policy operatorv1alpha1.BackupDeletionPolicy) *operatorv1alpha1.ClusterRegistryBackup {
	b := &operatorv1alpha1.ClusterRegistryBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       operatorv1alpha1.ClusterRegistryBackupSpec{RegistryRef: operatorv1alpha1.LocalObjectReference{Name: registry.Name}, DeletionPolicy: policy},
	}
	e.Create(b)
	return b
}

// waitPhase waits until a backup is in one of some phases, and reads it.
func waitPhase(e *framework.Env, b *operatorv1alpha1.ClusterRegistryBackup, phases ...operatorv1alpha1.BackupPhase) {
	e.Eventually(fmt.Sprintf("backup %s to be %v", b.Name, phases), func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		if !slices.Contains(phases, b.Status.Phase) {
			return fmt.Errorf("it is %q: %s", b.Status.Phase, b.Status.Message)
		}
		return nil
	})
}

// checkCompleted reports what a backup lacks that is in the store and verified.
func checkCompleted(t *testing.T, s *store, b operatorv1alpha1.ClusterRegistryBackup) {
	t.Helper()
	status := b.Status
	if status.VerifiedTime == nil || status.TakenTime == nil || status.Revision < 1 || status.Bytes < 1 || status.EtcdVersion == "" || status.Release == "" || status.Name != b.Name {
		t.Errorf("backup %s has the status %+v", b.Name, status)
	}
	if want := fmt.Sprintf("s3://%s/%s/%s/%s/manifest.json", bucket, prefix, status.Lineage, b.Name); status.Location != want {
		t.Errorf("backup %s is in %s, want %s", b.Name, status.Location, want)
	}
	clusters := slices.IndexFunc(status.Keys, func(k operatorv1alpha1.ResourceKeys) bool { return k.Resource == "clusters" })
	if clusters < 0 || status.Keys[clusters].Count < 1 {
		t.Errorf("backup %s has the keys %+v", b.Name, status.Keys)
	}
	have, err := read(s.keys(), status.Lineage)
	if err != nil || !slices.Contains(have.whole, b.Name) || !slices.Contains(have.verified, b.Name) || !slices.Contains(have.sums[b.Name], status.SHA256) {
		t.Errorf("the store has %+v, %v, and not backup %s with SHA-256 %s", have, err, b.Name, status.SHA256)
	}
}

// scheduled returns the backups that the schedule has made and that are completed, oldest
// first.
func scheduled(ctx context.Context, e *framework.Env) ([]operatorv1alpha1.ClusterRegistryBackup, error) {
	var list operatorv1alpha1.ClusterRegistryBackupList
	if err := e.Client.List(ctx, &list, client.InNamespace(e.Namespace)); err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(list.Items, func(b operatorv1alpha1.ClusterRegistryBackup) bool {
		return b.Annotations[operatorv1alpha1.AnnotationBackupReason] != string(operatorv1alpha1.BackupScheduled) || b.Status.Phase != operatorv1alpha1.BackupCompleted
	})
	slices.SortFunc(out, func(a, b operatorv1alpha1.ClusterRegistryBackup) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// TestBackups has a registry backed up every minute while clients send 200 requests a
// second: no request fails, each backup is verified, and old ones are removed. Then the
// store goes away and comes back.
func TestBackups(t *testing.T) {
	e := framework.New(t).WithOperator()
	s := startStore(t, e)
	registry := registryWith(e, s, 3, "* * * * *")
	e.Install(registry)
	e.WaitReady(registry)
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate, framework.Population(1000))
	load.Settle(t)
	load.Mark("backups")

	minutes := 3
	if framework.Full() {
		minutes = 10
	}
	seen, used := map[string]operatorv1alpha1.ClusterRegistryBackup{}, map[string]string{}
	e.Eventually(fmt.Sprintf("%d backups by the schedule", minutes), func(ctx context.Context) error {
		if err := jobsUsed(ctx, e, used); err != nil {
			return err
		}
		all, err := scheduled(ctx, e)
		if err != nil {
			return err
		}
		for _, b := range all {
			if _, known := seen[b.Name]; !known {
				t.Logf("backup %s: revision %d, %d bytes, %s", b.Name, b.Status.Revision, b.Status.Bytes, b.Status.CompletionTime.Sub(b.CreationTimestamp.Time))
				seen[b.Name] = b
			}
		}
		if len(seen) < minutes {
			return fmt.Errorf("there are %d", len(seen))
		}
		return nil
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionBackupReady, metav1.ConditionTrue, operatorv1alpha1.ReasonBackedUp)
	if b := registry.Status.Backup; b == nil || b.LastSuccess == nil || b.LastSuccess.VerifiedTime == nil || b.NextRun == nil || b.Window == nil || b.Lineage == "" {
		t.Errorf("the registry's status has %+v", b)
	}

	byHand := request(e, registry, "by-hand", operatorv1alpha1.BackupDeletionPolicyDelete)
	waitPhase(e, byHand, operatorv1alpha1.BackupCompleted)
	checkCompleted(t, s, *byHand) // before retention may remove it
	load.Settle(t)
	report := load.Stop()
	t.Logf("backed up every minute: %s", report)
	for _, task := range slices.Sorted(maps.Keys(used)) {
		t.Logf("%s took %s", task, used[task])
	}
	e.Unharmed(registry, report)

	testRetention(t, e, s, registry)
	testStoreDown(t, e, s, registry)
	testDeletionPolicies(t, e, s, registry)
}

// testRetention waits until no more backups are left than are to be kept, beside the newest
// one, which may just be written.
func testRetention(t *testing.T, e *framework.Env, s *store, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Backup.Suspend = true })
	e.Eventually("old backups to be removed", func(context.Context) error {
		have, err := read(s.keys(), registry.Status.Backup.Lineage)
		if err != nil || len(have.whole) > keepLast+1 {
			return fmt.Errorf("there are %v, %w", have.whole, err)
		}
		return nil
	})
}

// testStoreDown stops the store: the backup that is asked for waits with a message that names
// the store, and the registry says so; nothing else suffers. Then it comes back, and the backup
// is taken.
func testStoreDown(t *testing.T, e *framework.Env, s *store, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	s.scale(0)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Backup.Suspend = false })
	waits := request(e, registry, "store-down", operatorv1alpha1.BackupDeletionPolicyRetain)
	e.Eventually("the backup to wait for the store", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(waits), waits); err != nil {
			return err
		}
		if status := waits.Status; status.Phase.Ended() || !strings.Contains(status.Message, s.host) {
			return fmt.Errorf("it is %s: %s", status.Phase, status.Message)
		}
		return nil
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionBackupReady, metav1.ConditionFalse, operatorv1alpha1.ReasonStoreUnreachable, s.host)
	e.WaitCondition(registry, operatorv1alpha1.ConditionAvailable, metav1.ConditionTrue, operatorv1alpha1.ReasonAvailable)
	s.scale(1)
	waitPhase(e, waits, operatorv1alpha1.BackupCompleted, operatorv1alpha1.BackupSkipped)
	e.WaitCondition(registry, operatorv1alpha1.ConditionBackupReady, metav1.ConditionTrue, operatorv1alpha1.ReasonBackedUp)
}

// testDeletionPolicies deletes backups: with Delete the content goes, with Retain it stays;
// and all of it stays when the registry is deleted.
func testDeletionPolicies(t *testing.T, e *framework.Env, s *store, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	lineage := registry.Status.Backup.Lineage
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Backup.Suspend, spec.Backup.Retention.KeepLast = true, 100
	})
	for name, policy := range map[string]operatorv1alpha1.BackupDeletionPolicy{"kept": operatorv1alpha1.BackupDeletionPolicyRetain, "dropped": operatorv1alpha1.BackupDeletionPolicyDelete} {
		b := request(e, registry, name, policy)
		waitPhase(e, b, operatorv1alpha1.BackupCompleted)
		if err := e.Client.Delete(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		e.Eventually("backup "+name+" to be gone", func(ctx context.Context) error {
			if err := e.Client.Get(ctx, client.ObjectKeyFromObject(b), b); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is still there: %w", err)
			}
			return nil
		})
	}
	before, err := read(s.keys(), lineage)
	if err != nil || !slices.Contains(before.whole, "kept") || slices.Contains(before.whole, "dropped") || len(before.sums["dropped"]) > 0 {
		t.Errorf("the store has %+v, %v", before, err)
	}
	e.Remove(registry)
	if after, err := read(s.keys(), lineage); err != nil || !slices.Equal(after.whole, before.whole) {
		t.Errorf("the registry was deleted, and the store has %v of %v, %v", after.whole, before.whole, err)
	}
}

// TestNamespaceDeleted deletes the namespace of a registry while it is backed up. The
// namespace goes, though the registry has deletionPolicy Snapshot, and an event names the newest
// verified backup; what was saved before stays in the store, and nothing there is half a backup.
func TestNamespaceDeleted(t *testing.T) {
	e := framework.New(t).WithOperator()
	s := startStore(t, e)
	registry := registryWith(e, s, 1, never)
	registry.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicySnapshot
	e.Install(registry)
	e.WaitReady(registry)
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate/4)
	load.Settle(t)
	first := request(e, registry, "first", operatorv1alpha1.BackupDeletionPolicyDelete)
	waitPhase(e, first, operatorv1alpha1.BackupCompleted)
	second := request(e, registry, "second", operatorv1alpha1.BackupDeletionPolicyDelete)
	waitPhase(e, second, operatorv1alpha1.BackupSaving, operatorv1alpha1.BackupVerifying)
	load.Stop()
	deleteNamespace(t, e)
	waitNoLastBackup(e, registry)
	have, err := read(s.keys(), first.Status.Lineage)
	if err != nil || !slices.Contains(have.whole, "first") {
		t.Errorf("the namespace was deleted, and the store has %+v, %v", have, err)
	}
}
