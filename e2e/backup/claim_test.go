package backup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestClaim backs a registry up to a PersistentVolumeClaim, and verifies the backup. The claim
// stays when the registry is deleted with all its data, and another registry begins with the
// latest backup that is there: with equal clusters, and without changing what is on it.
func TestClaim(t *testing.T) {
	e := framework.New(t).WithOperator()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "backups"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	e.Create(claim)
	at := operatorv1alpha1.BackupStore{PersistentVolumeClaim: &operatorv1alpha1.VolumeStore{ClaimName: claim.Name, Path: "registries/prod"}}
	onClaim := func(name string) *operatorv1alpha1.ClusterRegistry {
		registry := e.Sample("independent-nodeport.yaml")
		registry.Name, registry.Spec.Server.Service.NodePort, registry.Spec.Etcd.Replicas = name, 0, 1
		registry.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicyDelete
		registry.Spec.Backup = &operatorv1alpha1.Backup{Schedule: never, Store: at, Retention: operatorv1alpha1.BackupRetention{KeepLast: keepLast}}
		return registry
	}
	old := onClaim("team")
	e.Install(old)
	e.WaitReady(old)
	for _, name := range []string{"one", "two", "three"} {
		addCluster(t, e, old, name)
	}
	saved, _, err := clusters(t.Context(), e, old)
	if err != nil {
		t.Fatal(err)
	}
	b := request(e, old, "on-a-claim", operatorv1alpha1.BackupDeletionPolicyRetain)
	waitPhase(e, b, operatorv1alpha1.BackupCompleted)
	if b.Status.VerifiedTime == nil || b.Status.SHA256 == "" || b.Status.Lineage == "" {
		t.Errorf("the backup has the status %+v", b.Status)
	}
	e.WaitCondition(old, operatorv1alpha1.ConditionBackupReady, metav1.ConditionTrue, operatorv1alpha1.ReasonBackedUp)
	e.Remove(old)
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil || claim.DeletionTimestamp != nil {
		t.Fatalf("the claim with the backups went with the registry: %v", err)
	}

	restored := onClaim("again")
	restored.Spec.RestoreFrom = &operatorv1alpha1.RestoreFrom{Store: &at, Lineage: b.Status.Lineage, Latest: new(true)}
	e.Install(restored)
	e.WaitReady(restored)
	got, _, err := clusters(t.Context(), e, restored)
	if err != nil {
		t.Fatal(err)
	}
	checkEqual(t, saved, got)
	if is := restored.Status.Restored; is == nil || is.Location != b.Status.Location || is.CompletionTime == nil {
		t.Errorf("the restored registry says %+v of a backup at %s", is, b.Status.Location)
	}
	again := request(e, restored, "of-the-restored", operatorv1alpha1.BackupDeletionPolicyRetain)
	waitPhase(e, again, operatorv1alpha1.BackupCompleted)
	if again.Status.Lineage == b.Status.Lineage {
		t.Errorf("the restored registry is backed up to the lineage of the old one, %s", again.Status.Lineage)
	}
}
