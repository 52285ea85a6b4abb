package volumes

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOtherClass compares the class of a claim, however it is written there, with the one
// that is asked for, if one is.
func TestOtherClass(t *testing.T) {
	annotated := claimOf("data", "1Gi", "1Gi", "slow")
	annotated.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "fast"}
	for _, test := range []struct {
		reason, asked string
		claim         *corev1.PersistentVolumeClaim
		other         bool
	}{
		{"the same", "fast", claimOf("data", "1Gi", "1Gi", "fast"), false},
		{"another one", "fast", claimOf("data", "1Gi", "1Gi", "slow"), true},
		{"none is asked for", "", claimOf("data", "1Gi", "1Gi", "slow"), false},
		{"it has none", "fast", claimOf("data", "1Gi", "1Gi", ""), true},
		{"as claims of old say it", "fast", annotated, false},
	} {
		registry := registryOf(t, "{replicas: 3, storage: {storageClassName: '"+test.asked+"'}}")
		if got := OtherClass(registry, test.claim); got != test.other {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}

// TestGrowthsOfClass has claims grow, but those of members that are replaced since their claims
// are of another class, which may not be able to.
func TestGrowthsOfClass(t *testing.T) {
	slow, fast := *claimOf("data-fleet-etcd-0", "8Gi", "8Gi", "slow"), *claimOf("data-fleet-etcd-1", "8Gi", "8Gi", "fast")
	for _, test := range []struct {
		reason string
		found  Volumes
		want   string
	}{
		{"one goes, and the other one stays", Volumes{Members: []corev1.PersistentVolumeClaim{slow, fast}, Template: resource.MustParse("8Gi"), TemplateClass: "slow"}, "[data-fleet-etcd-1]"},
		{"a single one is not replaced", Volumes{Members: []corev1.PersistentVolumeClaim{slow}, Template: resource.MustParse("8Gi"), TemplateClass: "slow"}, "[data-fleet-etcd-0]"},
		{"the StatefulSet is recreated with the size, and one was of the class before", Volumes{Members: []corev1.PersistentVolumeClaim{slow, fast}, Template: resource.MustParse("16Gi"), TemplateClass: "slow"}, "[data-fleet-etcd-1]"},
		{"it was recreated", Volumes{Members: []corev1.PersistentVolumeClaim{slow, fast}, Template: resource.MustParse("16Gi"), TemplateClass: "fast"}, "[]"},
	} {
		got := []string{}
		for _, growth := range test.found.Growths(registryOf(t, "{replicas: 3, storage: {size: 16Gi, storageClassName: fast}}")) {
			got = append(got, growth.Claim.Name)
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%s: %v grow, want %s", test.reason, got, test.want)
		}
	}
}

// TestClassDiffers says nothing of members that are replaced: an operation does; and nothing of
// the claim for snapshots, which keeps its class: nothing has to be done, least of all to delete
// snapshots.
func TestClassDiffers(t *testing.T) {
	found := Volumes{Members: []corev1.PersistentVolumeClaim{*claimOf("data-fleet-etcd-0", "8Gi", "8Gi", "slow")}, Snapshots: claimOf("fleet-snapshots", "20Gi", "20Gi", "")}
	registry := registryOf(t, "{replicas: 1, storage: {size: 8Gi, storageClassName: fast}}")
	if got := found.Differ(registry); got != "" {
		t.Error(got)
	}
}

// TestQuotaOfPods finds the quota that etcd runs with where there is no StatefulSet, as while
// it is recreated: it must not be lowered by that.
func TestQuotaOfPods(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd-2"}, Spec: setOf("8589934592").Spec.Template.Spec}
	found, err := Read(t.Context(), reading(t, pod), registryOf(t, "{replicas: 3}"), members)
	if err != nil || found.Quota != 8589934592 || !found.Template.IsZero() {
		t.Errorf("%+v, %v", found, err)
	}
	set := setOf("1024")
	set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = new("slow")
	if found, err = Read(t.Context(), reading(t, pod, set), registryOf(t, "{replicas: 3}"), members); err != nil || found.Quota != 1024 || found.TemplateClass != "slow" {
		t.Errorf("%+v, %v", found, err)
	}
}
