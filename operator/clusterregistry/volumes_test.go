package clusterregistry

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// setOf returns the StatefulSet of an etcd with a quota.
func setOf(quota string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd"}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "etcd", Args: []string{"--name=$(POD_NAME)", "--quota-backend-bytes=" + quota}}}
	return set
}

// TestVolumes is about claims that are there when a registry is created, and those
// that grow or wait for a volume under one that runs.
func TestVolumes(t *testing.T) {
	for _, test := range []struct {
		reason, storage string
		claims          []client.Object
		quota           int64  // in MiB
		says            string // nothing when empty
	}{
		{"there are none", "{size: 100Gi}", nil, 8192, ""},
		{"they are as asked for", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "8Gi", "standard"), claimOf("fleet-snapshots", "20Gi", "", "standard")}, 4096, ""},
		{"they have no volumes yet", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "", "")}, 4096, ""},
		{"volumes are larger, and the spec decides", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "1Gi", "100Gi", ""), claimOf("data-fleet-etcd-1", "100Gi", "", "")}, 4096, ""},
		{"the smallest counts", "{size: 100Gi}", []client.Object{claimOf("data-fleet-etcd-0", "100Gi", "100Gi", ""), claimOf("data-fleet-etcd-1", "4Gi", "4Gi", ""), claimOf("data-fleet-etcd-2", "8Gi", "8Gi", "")}, 2048,
			"PersistentVolumeClaim data-fleet-etcd-1 has 4Gi, PersistentVolumeClaim data-fleet-etcd-2 has 8Gi, and spec.etcd.storage.size is 100Gi: etcd's quota follows the smallest volume and is 2048 MiB"},
		{"one grows", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "4Gi", "")}, 2048, "data-fleet-etcd-0 has 4Gi (8Gi requested)"},
		{"one has no volume, and never gets one", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "8Gi", ""), claimOf("data-fleet-etcd-1", "8Gi", "8Gi", ""), claimOf("data-fleet-etcd-2", "1Mi", "", "")}, 4096, ""},
		{"its size is not known", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "0", "")}, 4096, ""},
		{"none has a volume yet", "{size: 8Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "", ""), claimOf("data-fleet-etcd-1", "4Gi", "", "")}, 2048, "data-fleet-etcd-1 requests 4Gi"},
		{"another registry's don't count", "{size: 8Gi}", []client.Object{claimOf("data-other-etcd-0", "1Gi", "1Gi", "")}, 4096, ""},
		{"snapshots of a full etcd don't fit", "{size: 8Gi}", []client.Object{claimOf("fleet-snapshots", "1Gi", "1Gi", "")}, 4096, "PersistentVolumeClaim fleet-snapshots has 1Gi, and the snapshots of an etcd that is full take up to 20Gi"},
		{"they fit an etcd that is small itself", "{size: 100Gi}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "8Gi", ""), claimOf("fleet-snapshots", "20Gi", "20Gi", "")}, 4096, "data-fleet-etcd-0 has 8Gi"},
		{"one is smaller, and the quota is the largest either way", "{size: 20Gi}", []client.Object{claimOf("data-fleet-etcd-0", "18Gi", "18Gi", "")}, 8192, "data-fleet-etcd-0 has 18Gi, and spec.etcd.storage.size is 20Gi: nothing has to be done"},
		{"etcd runs with more than they hold", "{size: 20Gi}", []client.Object{setOf("8589934592"), claimOf("data-fleet-etcd-0", "4Gi", "4Gi", ""), claimOf("data-fleet-etcd-1", "18Gi", "18Gi", "")}, 8192,
			"PersistentVolumeClaim data-fleet-etcd-0 has 4Gi, and etcd's quota is 8192 MiB of data, which is more than half of the volume and is not lowered while etcd exists: the volume may be full before etcd refuses writes; enlarge each of these claims to 16Gi where its StorageClass allows it (spec.resources.requests.storage), or keep etcd's data below 2048 MiB"},
		{"etcd runs with more, and they have grown", "{size: 20Gi}", []client.Object{setOf("8589934592"), claimOf("data-fleet-etcd-0", "20Gi", "20Gi", "")}, 8192, ""},
		{"etcd runs with less, and they have grown", "{size: 20Gi}", []client.Object{setOf("2147483648"), claimOf("data-fleet-etcd-0", "12Gi", "12Gi", "")}, 6144, "data-fleet-etcd-0 has 12Gi, and spec.etcd.storage.size is 20Gi: etcd's quota follows the smallest volume and is 6144 MiB of data"},
		{"etcd runs with more than the spec asks for, and they hold it", "{size: 8Gi}", []client.Object{setOf("8589934592"), claimOf("data-fleet-etcd-0", "8Gi", "100Gi", "")}, 8192, ""},
		{"etcd runs with its default", "{size: 1Gi}", []client.Object{setOf("0"), claimOf("data-fleet-etcd-0", "1Gi", "1Gi", "")}, 2048, "etcd's quota is 2048 MiB of data, which is more"},
		{"etcd can't run with it", "{size: 1Gi}", []client.Object{setOf("much")}, 512, ""},
		{"the quota of a negative size", "{size: 1Gi}", []client.Object{setOf("-1")}, 512, ""},
		{"snapshots of what etcd runs with", "{size: 8Gi}", []client.Object{setOf("8589934592"), claimOf("fleet-snapshots", "20Gi", "20Gi", "")}, 8192, "take up to 40Gi"},
		{"they are of another class", "{size: 8Gi, storageClassName: fast}", []client.Object{claimOf("data-fleet-etcd-0", "8Gi", "8Gi", "slow"), claimOf("data-fleet-etcd-1", "8Gi", "8Gi", "fast"), claimOf("fleet-snapshots", "20Gi", "20Gi", "slow")}, 4096,
			"PersistentVolumeClaim data-fleet-etcd-0 is of StorageClass slow, PersistentVolumeClaim fleet-snapshots is of StorageClass slow, and spec.etcd.storage.storageClassName is fast: volumes keep their class"},
	} {
		s := look(t, "{spec: {etcd: {replicas: 3, storage: "+test.storage+"}}}")
		r := reading(t, test.claims...)
		r.Client = reading(t).Client // what the cache has is behind
		var err error
		if s.volumes, err = r.readVolumes(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if got := s.etcdQuota() >> 20; got != test.quota {
			t.Errorf("%s: the quota is %d MiB, want %d", test.reason, got, test.quota)
		}
		if got := s.volumesDiffer(); !strings.Contains(got, test.says) || (got == "") != (test.says == "") {
			t.Errorf("%s: it says %q, want %q", test.reason, got, test.says)
		}
	}
	s := look(t, "{spec: {etcd: {external: {endpoints: ['https://a:1']}}}}")
	if found, err := reading(t, claimOf("fleet-snapshots", "1Gi", "", "")).readVolumes(t.Context(), s); err != nil || found.snapshots != nil {
		t.Errorf("an external etcd: %+v, %v", found, err)
	}
}

// TestVolumesNote has EtcdReady stay true, and a container that was killed for want
// of memory come first.
func TestVolumesNote(t *testing.T) {
	s := look(t, "{spec: {mode: Aggregated, etcd: {replicas: 1, storage: {size: 100Gi}}}}")
	s.volumes.members = []corev1.PersistentVolumeClaim{*claimOf("data-fleet-etcd-0", "8Gi", "8Gi", "")}
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
