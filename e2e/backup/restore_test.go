package backup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
)

// raised is how far above that of the backup a restored registry begins at least.
const raised = 1_000_000_000

// clusters returns the clusters of a registry, by name, and the revision of the list.
func clusters(ctx context.Context, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) (map[string]v1beta1.Cluster, int64, error) {
	clients, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		return nil, 0, err
	}
	list, err := clients.ClusterregistryV1beta1().Clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	out := map[string]v1beta1.Cluster{}
	for _, cluster := range list.Items {
		out[cluster.Name] = cluster
	}
	revision, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	return out, revision, err
}

// checkEqual fails the test where a restored registry has other clusters than were saved, but
// for the revision of a list.
func checkEqual(t *testing.T, saved, restored map[string]v1beta1.Cluster) {
	t.Helper()
	if got, want := slices.Sorted(maps.Keys(restored)), slices.Sorted(maps.Keys(saved)); !slices.Equal(got, want) {
		t.Errorf("restored are %d clusters of %d: %v, want %v", len(got), len(want), got, want)
	}
	for name, was := range saved {
		is := restored[name]
		if is.UID != was.UID || !is.CreationTimestamp.Equal(&was.CreationTimestamp) || !apiequality.Semantic.DeepEqual(is.Labels, was.Labels) ||
			!apiequality.Semantic.DeepEqual(is.Spec, was.Spec) || !apiequality.Semantic.DeepEqual(is.Status, was.Status) {
			t.Errorf("%s was restored as\n%+v, and saved as\n%+v", name, is, was)
		}
	}
}

// elsewhere returns a registry of so many members for another namespace, with the Secret of
// the store, that begins with a backup.
func elsewhere(e *framework.Env, s *store, name string, members int32, from operatorv1alpha1.RestoreFrom) *operatorv1alpha1.ClusterRegistry {
	registry := registryWith(e, s, members, never)
	registry.Name, registry.Spec.RestoreFrom = name, &from
	return registry
}

// TestRestore saves a registry and restores it in another namespace, while the old one runs
// on: with all that was acknowledged before the backup, object by object, at revisions that no
// client has seen, and in three members. What can't be restored is refused, and nothing is made.
func TestRestore(t *testing.T) {
	e := framework.New(t).WithOperator()
	s := startStore(t, e)
	e.Apply("restore.yaml", map[string]string{"Namespace": e.Namespace + "-restored", "User": user, "Password": password})
	there := e.In(t)
	there.Namespace = e.Namespace + "-restored"
	old := registryWith(e, s, 1, never)
	e.Install(old)
	e.WaitReady(old)
	for i := range 100 {
		addCluster(t, e, old, fmt.Sprintf("c-%03d", i))
	}
	saved, before, err := clusters(t.Context(), e, old)
	if err != nil || len(saved) < 100 {
		t.Fatalf("there are %d clusters, %v", len(saved), err)
	}
	b := request(e, old, "rehearsal", operatorv1alpha1.BackupDeletionPolicyRetain)
	waitPhase(e, b, operatorv1alpha1.BackupCompleted)
	checkCompleted(t, s, *b)
	later := addCluster(t, e, old, "after-the-backup")

	began := time.Now()
	restored := elsewhere(there, s, "fleet", 3, operatorv1alpha1.RestoreFrom{BackupRef: &operatorv1alpha1.BackupReference{Name: b.Name, Namespace: b.Namespace}})
	there.Install(restored)
	there.WaitReady(restored)
	t.Logf("restored %d clusters from %d bytes, until Ready with 3 members: %s", len(saved), b.Status.Bytes, time.Since(began).Round(time.Second))
	testRestored(t, there, restored, *b)
	got, revision, err := clusters(t.Context(), there, restored)
	if err != nil {
		t.Fatal(err)
	}
	checkEqual(t, saved, got)
	if _, has := got[later]; has {
		t.Errorf("%s was written after the backup, and was restored", later)
	}
	if revision < before+raised {
		t.Errorf("the restored registry is at revision %d, and the old one was at %d", revision, before)
	}
	there.CheckOldWatch(restored, before)
	if now, _, err := clusters(t.Context(), e, old); err != nil || len(now) != len(saved)+1 {
		t.Errorf("the old registry has %d clusters, %v", len(now), err)
	}
	testMemberRestarts(t, there, restored)
	testLineages(t, there, s, old, restored)
	testRefusals(t, there, s, *b)
	testDataInTheWay(t, there, s, restored, *b)
}

// addCluster writes one more cluster, and returns its name.
func addCluster(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, name string) string {
	t.Helper()
	clients, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		t.Fatal(err)
	}
	cluster := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": name}}}
	cluster.Spec.Endpoints = []v1beta1.Endpoint{{Name: "main", URL: "https://" + name + ".example:6443"}}
	if _, err := clients.ClusterregistryV1beta1().Clusters().Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// testRestored reads what the status of a restored registry says.
func testRestored(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, b operatorv1alpha1.ClusterRegistryBackup) {
	t.Helper()
	is := registry.Status.Restored
	if is == nil || is.Backup != b.Namespace+"/"+b.Name || is.Location != b.Status.Location || is.Revision != b.Status.Revision || !is.TakenTime.Equal(b.Status.TakenTime) ||
		is.VerifiedTime == nil || is.CompletionTime == nil || is.Lineage == "" || is.Lineage == b.Status.Lineage {
		t.Errorf("the restored registry says %+v of backup %+v", is, b.Status)
	}
	if registry.Status.Etcd.Ready != "3/3" {
		t.Errorf("the restored registry has %s members", registry.Status.Etcd.Ready)
	}
	if err := e.Client.Get(t.Context(), client.ObjectKey{Namespace: registry.Namespace, Name: registry.Name + "-restore"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap with the CA of the store is left, %v", err)
	}
}

// testMemberRestarts deletes the pod of the member that was restored: what was written since
// is there.
func testMemberRestarts(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	name := addCluster(t, e, registry, "after-the-restore")
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = registry.Namespace, registry.Name+"-etcd-0"
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	for _, container := range pod.Spec.InitContainers {
		if container.Name == "restore" || container.Name == "fetch" {
			t.Errorf("the member that was restored still has the init container %s", container.Name)
		}
	}
	if err := e.Client.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the restored member to be back", func(ctx context.Context) error {
		again := &corev1.Pod{}
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(pod), again); err != nil {
			return err
		}
		if again.UID == pod.UID {
			return fmt.Errorf("it was not deleted")
		}
		return nil
	})
	e.WaitReady(registry)
	if got, _, err := clusters(t.Context(), e, registry); err != nil || got[name].UID == "" {
		t.Errorf("%s was written after the restore, and is gone: %v", name, err)
	}
}

// testLineages takes a backup of the restored registry: it is beside those of the old one, of
// which nothing changes.
func testLineages(t *testing.T, e *framework.Env, s *store, old, restored *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	keys := func(lineage string) (out []string) {
		for _, key := range s.keys() {
			if strings.HasPrefix(key, lineage+"/") {
				out = append(out, key)
			}
		}
		return out
	}
	before := keys(old.Status.Backup.Lineage)
	b := &operatorv1alpha1.ClusterRegistryBackup{ObjectMeta: metav1.ObjectMeta{Name: "rehearsal", Namespace: restored.Namespace}}
	b.Spec.RegistryRef.Name = restored.Name
	e.Create(b)
	waitPhase(e, b, operatorv1alpha1.BackupCompleted)
	if b.Status.Lineage != restored.Status.Restored.Lineage || len(keys(b.Status.Lineage)) == 0 {
		t.Errorf("the backup of the restored registry is in lineage %s, want %s", b.Status.Lineage, restored.Status.Restored.Lineage)
	}
	if after := keys(old.Status.Backup.Lineage); !slices.Equal(before, after) {
		t.Errorf("the old registry's lineage had %v, and has %v", before, after)
	}
}

// testRefusals asks for what can't be restored: each says why, and nothing is made.
func testRefusals(t *testing.T, e *framework.Env, s *store, b operatorv1alpha1.ClusterRegistryBackup) {
	t.Helper()
	spec := s.spec()
	for _, test := range []struct {
		name   string
		from   operatorv1alpha1.RestoreFrom
		change func(*operatorv1alpha1.ClusterRegistrySpec)
		reason string
		says   string
	}{
		{"too-small", operatorv1alpha1.RestoreFrom{BackupRef: &operatorv1alpha1.BackupReference{Name: b.Name, Namespace: b.Namespace}}, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
			spec.Etcd.Storage = &operatorv1alpha1.Storage{Size: resource.MustParse("256Mi")}
		}, operatorv1alpha1.ReasonRestoreRefused, "set that to at least"},
		{"absent", operatorv1alpha1.RestoreFrom{Store: &spec, Lineage: b.Status.Lineage, Name: "never-taken"}, nil, operatorv1alpha1.ReasonRestorePending, "there is no backup never-taken"},
		{"too-early", operatorv1alpha1.RestoreFrom{Store: &spec, Lineage: b.Status.Lineage, Before: new(metav1.NewTime(b.Status.TakenTime.Add(-time.Hour)))}, nil, operatorv1alpha1.ReasonRestorePending, "there is no usable backup from before"},
		{"no-object", operatorv1alpha1.RestoreFrom{BackupRef: &operatorv1alpha1.BackupReference{Name: "none", Namespace: b.Namespace}}, nil, operatorv1alpha1.ReasonRestorePending, "which does not exist"},
	} {
		registry := elsewhere(e, s, test.name, 1, test.from)
		if test.change != nil {
			test.change(&registry.Spec)
		}
		e.Install(registry)
		e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, test.reason, test.says)
		nothingMade(t, e, registry)
		e.Remove(registry)
	}
}

// nothingMade fails the test where anything of a registry was made that outlives it.
func nothingMade(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	if err := e.Client.List(t.Context(), claims, client.InNamespace(registry.Namespace), client.MatchingLabels{operatorv1alpha1.LabelInstance: registry.Name}); err != nil || len(claims.Items) > 0 {
		t.Errorf("%s has the claims %v, %v", registry.Name, claims.Items, err)
	}
	for _, name := range []string{registry.Name + "-etcd-identity", registry.Name + "-etcd-trust"} {
		if err := e.Client.Get(t.Context(), client.ObjectKey{Namespace: registry.Namespace, Name: name}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s has ConfigMap %s: %v", registry.Name, name, err)
		}
	}
}

// testDataInTheWay deletes the restored registry, whose data is retained. The same object takes
// it over; one that asks for another backup is refused.
func testDataInTheWay(t *testing.T, e *framework.Env, s *store, restored *operatorv1alpha1.ClusterRegistry, b operatorv1alpha1.ClusterRegistryBackup) {
	t.Helper()
	spec := s.spec()
	byRef := operatorv1alpha1.RestoreFrom{BackupRef: &operatorv1alpha1.BackupReference{Name: b.Name, Namespace: b.Namespace}}
	e.Remove(restored)
	other := elsewhere(e, s, "fleet", 3, operatorv1alpha1.RestoreFrom{Store: &spec, Lineage: b.Status.Lineage, Latest: new(true)})
	e.Install(other)
	e.WaitCondition(other, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonRestoreRefused, "there is data of an earlier ClusterRegistry of this name")
	e.Remove(other)
	same := elsewhere(e, s, "fleet", 3, byRef)
	e.Install(same)
	e.WaitReady(same)
	if got, _, err := clusters(t.Context(), e, same); err != nil || got["after-the-restore"].UID == "" {
		t.Errorf("what was written after the restore is gone when the same registry is created again: %v", err)
	}
}

// TestRestoreEncrypted restores a registry whose clusters are encrypted, where the key is: the
// servers come up with it, and in the end have no other.
func TestRestoreEncrypted(t *testing.T) {
	e := framework.New(t).WithOperator()
	s := startStore(t, e)
	e.Apply("restore.yaml", map[string]string{"Namespace": e.Namespace + "-restored", "User": user, "Password": password})
	there := e.In(t)
	there.Namespace = e.Namespace + "-restored"
	encrypted := func(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
		configuration := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [clusters.clusterregistry.k8s.io]\n  providers:\n  - secretbox: {keys: [{name: first, secret: c2VjcmV0IGlzIHNlY3VyZSBhbmQgaXMgMzIgYnl0ZXM=}]}\n"
		e.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"encryption.yaml": configuration}})
		registry.Spec.Server.Encryption = &operatorv1alpha1.Encryption{SecretRef: operatorv1alpha1.EncryptionSecretSelector{Name: "keys"}}
	}
	under := func(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
		e.Eventually(registry.Name+" to have no other key than the first", func(ctx context.Context) error {
			if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
				return err
			}
			if o := registry.Status.Operation; o != nil && o.Phase == operatorv1alpha1.PhaseKeyRemoval {
				if err := e.DropHistory(ctx, registry); err != nil {
					return err
				}
			}
			if is := registry.Status.Encryption; is == nil || !slices.Equal(is.Reads, []string{"secretbox/first"}) || registry.Status.Operation != nil {
				return fmt.Errorf("it has %+v, %+v", is, registry.Status.Operation)
			}
			return nil
		})
		e.WaitReady(registry)
	}
	old := registryWith(e, s, 1, never)
	encrypted(e, old)
	e.Install(old)
	under(e, old)
	for i := range 10 {
		addCluster(t, e, old, fmt.Sprintf("c-%03d", i))
	}
	saved, _, err := clusters(t.Context(), e, old)
	if err != nil {
		t.Fatal(err)
	}
	b := request(e, old, "rehearsal", operatorv1alpha1.BackupDeletionPolicyRetain)
	waitPhase(e, b, operatorv1alpha1.BackupCompleted)

	spec := s.spec()
	restored := elsewhere(there, s, "fleet", 1, operatorv1alpha1.RestoreFrom{Store: &spec, Lineage: b.Status.Lineage, Latest: new(true)})
	encrypted(there, restored)
	there.Install(restored)
	under(there, restored)
	got, _, err := clusters(t.Context(), there, restored)
	if err != nil {
		t.Fatal(err)
	}
	checkEqual(t, saved, got)
	if is := restored.Status.Restored; is == nil || is.Location != b.Status.Location || is.Backup != "" {
		t.Errorf("the restored registry says %+v", is)
	}
}
