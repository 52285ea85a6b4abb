package backup

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestRecovery recovers an etcd that has lost the data of all its members with a backup: what
// was acknowledged before it is there, at revisions that no client has seen, and the operator is
// killed in each phase. A backup that there is not is refused before anything is stopped.
func TestRecovery(t *testing.T) {
	e := framework.New(t).WithOperator()
	s := startStore(t, e)
	registry := registryWith(e, s, 3, never)
	registry.Spec.Etcd.ReplaceAfter = &metav1.Duration{} // a person decides
	e.Install(registry)
	e.WaitReady(registry)
	for i := range 50 {
		addCluster(t, e, registry, fmt.Sprintf("c-%03d", i))
	}
	saved, _, err := clusters(t.Context(), e, registry)
	if err != nil {
		t.Fatal(err)
	}
	b := request(e, registry, "before-the-loss", operatorv1alpha1.BackupDeletionPolicyRetain)
	waitPhase(e, b, operatorv1alpha1.BackupCompleted)
	later := addCluster(t, e, registry, "after-the-backup")
	_, before, err := clusters(t.Context(), e, registry)
	if err != nil {
		t.Fatal(err)
	}
	lineage, cluster := registry.Status.Backup.Lineage, registry.Status.Etcd.ClusterID
	lose(e, registry, registry.Status.Etcd.Members, "Left is the data of no member")

	left := registry.Status.Recovery
	if left.Backup == nil || left.Backup.Name != b.Name {
		t.Fatalf("left is %+v, and backup %s was verified", left, b.Name)
	}
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Recovery = &operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromBackup, Name: "another", ApprovedFor: left.ID}
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonQuorumLost, "there is no ClusterRegistryBackup of that name")
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Recovery.Name, spec.Recovery.AcceptDataLossUpTo = b.Name, left.Backup.RevisionsLost
	})
	for _, phase := range []operatorv1alpha1.RecoveryPhase{operatorv1alpha1.RecoveryStopping, operatorv1alpha1.RecoveryRestoring} {
		e.Eventually("the recovery to have come to phase "+string(phase), func(ctx context.Context) error {
			if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
				return err
			}
			if now := registry.Status.Recovery; registry.Status.Recovered == nil && (now == nil || now.Phase != phase && now.Phase != operatorv1alpha1.RecoveryRestoring) {
				return fmt.Errorf("it is %+v", now)
			}
			return nil
		})
		if err := e.KillOperator(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.WaitRecovered(registry, 3)
	recovered := registry.Status.Recovered
	if recovered.Name != b.Name || recovered.From != operatorv1alpha1.RecoverFromBackup || recovered.Revision != b.Status.Revision || recovered.Lineage == lineage || registry.Status.Etcd.ClusterID == cluster {
		t.Errorf("recovered is %+v, with backup %+v", recovered, b.Status)
	}
	got, revision, err := clusters(t.Context(), e, registry)
	if err != nil {
		t.Fatal(err)
	}
	checkEqual(t, saved, got)
	if _, has := got[later]; has || revision <= before || revision < b.Status.Revision+raised {
		t.Errorf("%s is there: %t; the registry is at revision %d, and was at %d", later, has, revision, before)
	}
	e.CheckOldWatch(registry, before)
	second := request(e, registry, "after-the-recovery", operatorv1alpha1.BackupDeletionPolicyRetain)
	waitPhase(e, second, operatorv1alpha1.BackupCompleted)
	if second.Status.Lineage != recovered.Lineage {
		t.Errorf("a backup after the recovery is of lineage %s, want %s", second.Status.Lineage, recovered.Lineage)
	}
}

// TestMatrixRecoverySingle recovers an etcd whose only member has lost its claim, and the volume with
// its data, in place with a backup. The member itself can't be approved, and nothing is done
// before a backup is.
func TestMatrixRecoverySingle(t *testing.T) {
	e := framework.New(t).WithOperator()
	s := startStore(t, e)
	registry := registryWith(e, s, 1, never)
	registry.Spec.Controllers = nil // none writes meanwhile
	e.Install(registry)
	e.WaitReady(registry)
	addCluster(t, e, registry, "before-the-backup")
	saved, _, err := clusters(t.Context(), e, registry)
	if err != nil {
		t.Fatal(err)
	}
	b := request(e, registry, "before-the-loss", operatorv1alpha1.BackupDeletionPolicyRetain)
	waitPhase(e, b, operatorv1alpha1.BackupCompleted)
	later := addCluster(t, e, registry, "after-the-backup")
	_, before, err := clusters(t.Context(), e, registry)
	if err != nil {
		t.Fatal(err)
	}
	cluster, member := registry.Status.Etcd.ClusterID, registry.Status.Etcd.Members[0].Name
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "data-" + member}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: member}}
	if err := errors.Join(e.Client.Delete(t.Context(), claim), e.Client.Delete(t.Context(), pod)); err != nil {
		t.Fatal(err)
	}
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonQuorumLost, "the data of etcd's only member is gone", "the newest verified backup is "+b.Name)
	left := registry.Status.Recovery
	if left.Backup == nil || len(left.Members) != 1 || !left.Members[0].DataGone || registry.Status.Etcd.ClusterID != cluster {
		t.Fatalf("left is %+v", left)
	}
	if err := e.Get(t.Context(), claim.Name, claim); err != nil { // another one, with an empty volume
		t.Fatal(err)
	}
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Recovery = &operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromMember, Name: member, AcceptDataLossUpTo: 1 << 40, ApprovedFor: left.ID}
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonQuorumLost, "set spec.recovery.name to a member whose data is left (there is none), or recover with a backup")
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Recovery = &operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromBackup, Name: b.Name, AcceptDataLossUpTo: left.Backup.RevisionsLost, ApprovedFor: left.ID}
	})
	e.WaitRecovered(registry, 1)
	if recovered := registry.Status.Recovered; recovered.ID != left.ID || recovered.Name != b.Name || recovered.Revision != b.Status.Revision || recovered.Lineage == b.Status.Lineage || registry.Status.Etcd.ClusterID == cluster {
		t.Errorf("recovered is %+v, with backup %+v", recovered, b.Status)
	}
	got, revision, err := clusters(t.Context(), e, registry)
	if err != nil {
		t.Fatal(err)
	}
	checkEqual(t, saved, got)
	if _, has := got[later]; has || revision <= before {
		t.Errorf("%s is there: %t; the registry is at revision %d, and was at %d", later, has, revision, before)
	}
	e.CheckOldWatch(registry, before)
	volume := &corev1.PersistentVolume{}
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil || volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("the volume that the member had is %s: %v", volume.Spec.PersistentVolumeReclaimPolicy, err)
	}
	_ = e.Client.Delete(context.Background(), volume)
}

// lose takes the data of members away, and waits until it is known what is left.
func lose(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, members []operatorv1alpha1.EtcdMember, left string) {
	e.LoseMembers(registry, members)
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonQuorumLost, left)
}
