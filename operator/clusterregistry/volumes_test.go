package clusterregistry

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// claimOf returns a claim that asks for a size and a class, if one is named, and
// whose volume has another size, if one is named.
func claimOf(name, asks, has, class string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(asks)}
	if class != "" {
		claim.Spec.StorageClassName = &class
	}
	if has != "" {
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(has)}
	}
	return claim
}

// TestReadVolumes has data be seen that the cache does not have yet.
func TestReadVolumes(t *testing.T) {
	s := look(t, "{spec: {etcd: {replicas: 3}}}")
	s.members = []string{"fleet-etcd-0", "fleet-etcd-1", "fleet-etcd-2"}
	r := reading(t, claimOf("data-fleet-etcd-1", "8Gi", "8Gi", ""))
	r.Client = reading(t).Client
	if found, err := r.readVolumes(t.Context(), s); err != nil || len(found.Members) != 1 || found.Members[0].Name != "data-fleet-etcd-1" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestVolumesNote has EtcdReady stay true, and a container that was killed for want
// of memory come first.
func TestVolumesNote(t *testing.T) {
	s := look(t, "{spec: {mode: Aggregated, etcd: {replicas: 1, storage: {size: 100Gi}}}}")
	s.volumes.Members = []corev1.PersistentVolumeClaim{*claimOf("data-fleet-etcd-0", "8Gi", "8Gi", "")}
	for _, kind := range s.parts() {
		s.record(kind, done)
	}
	s.record(operatorv1alpha1.ConditionEtcdReady, s.volumesNoted(done))
	condition := meta.FindStatusCondition(s.conditions(), operatorv1alpha1.ConditionEtcdReady)
	if condition.Status != metav1.ConditionTrue || condition.Reason != operatorv1alpha1.ReasonVolumesDiffer || !strings.Contains(condition.Message, "data-fleet-etcd-0 has 8Gi") {
		t.Errorf("%+v", condition)
	}
	if ready := meta.FindStatusCondition(s.conditions(), operatorv1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue || ready.Reason != operatorv1alpha1.ReasonReady {
		t.Errorf("%+v", ready)
	}
	s.record(operatorv1alpha1.ConditionEtcdReady, s.volumesNoted(done).Note(operatorv1alpha1.ReasonOOMKilled, "pod fleet-etcd-0"))
	if condition := meta.FindStatusCondition(s.conditions(), operatorv1alpha1.ConditionEtcdReady); condition.Reason != operatorv1alpha1.ReasonOOMKilled || !strings.Contains(condition.Message, "data-fleet-etcd-0 has 8Gi") || !strings.HasSuffix(condition.Message, "; pod fleet-etcd-0") {
		t.Errorf("%+v", condition)
	}
}
