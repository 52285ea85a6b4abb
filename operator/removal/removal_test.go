package removal

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/pages"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass/passtest"
)

// TestDeleteClaims deletes all claims of the registry, those beyond a page among them, and no other
// one, and waits until none is left.
func TestDeleteClaims(t *testing.T) {
	s := passtest.New(t, "{spec: {deletionPolicy: Delete, etcd: {replicas: 1}}}")
	other := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "other"}}
	claims := []client.Object{other}
	for i := range pages.Size + 1 {
		claims = append(claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("data-%02d", i), Labels: map[string]string{
			operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: "fleet"}}})
	}
	s.HostCluster = operandtest.Host(t, claims...)
	for _, want := range []string{"waiting for PersistentVolumeClaim data-00 to be deleted", ""} {
		if got, err := (Removal{Pass: s.Pass, Data: true}).deleteClaims(t.Context()); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if err := s.Live.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Errorf("the claim of another one: %v", err)
	}
}

// TestReleaseVolumes gives old volumes of replaced members their reclaim policy back when the
// data goes with the registry, and only then.
func TestReleaseVolumes(t *testing.T) {
	for policy, want := range map[operatorv1alpha1.DeletionPolicy]corev1.PersistentVolumeReclaimPolicy{
		operatorv1alpha1.DeletionPolicyRetain: corev1.PersistentVolumeReclaimRetain,
		operatorv1alpha1.DeletionPolicyDelete: corev1.PersistentVolumeReclaimDelete,
	} {
		s := passtest.New(t, "{spec: {deletionPolicy: "+string(policy)+", etcd: {replicas: 1}}}")
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", Annotations: map[string]string{operatorv1alpha1.AnnotationReclaimPolicy: "Delete"}}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, ClaimRef: &corev1.ObjectReference{Namespace: "team", Name: "data-fleet-etcd-1", UID: "1"}}}
		s.HostCluster = operandtest.Host(t, volume)
		r := Removal{Pass: s.Pass, Data: policy == operatorv1alpha1.DeletionPolicyDelete}
		s.Identity.Record = &etcd.Record{Identity: etcd.Identity{ClusterID: "c"}, Kept: []etcd.KeptVolume{{Name: "gone", Claim: "0", Policy: "Delete", Cluster: "c"}, {Name: "pv", Claim: "1", Policy: "Delete", Cluster: "c"}}}
		for range 2 { // an operator that was killed before the record was deleted
			if err := r.releaseVolumes(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(volume), volume); err != nil || volume.Spec.PersistentVolumeReclaimPolicy != want {
			t.Errorf("%s: the volume's policy is %s: %v", policy, volume.Spec.PersistentVolumeReclaimPolicy, err)
		}
	}
	if err := (Removal{Pass: passtest.New(t, "{spec: {deletionPolicy: Delete, etcd: {replicas: 1}}}").Pass, Data: true}).releaseVolumes(t.Context()); err != nil {
		t.Errorf("without a record: %v", err)
	}
}
