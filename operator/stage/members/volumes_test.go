package members

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
)

// claimOf returns the first member's claim, which asks for a size and a class, if one is named, and
// whose volume has another size, if one is named.
func claimOf(asks, has, class string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-fleet-etcd-0"}}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(asks)}
	if class != "" {
		claim.Spec.StorageClassName = &class
	}
	if has != "" {
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(has)}
	}
	return claim
}

// TestVolumesNote has the stage be done with a note on volumes that were taken over, and a
// container that was killed for want of memory come first.
func TestVolumesNote(t *testing.T) {
	taken := func(m *managed) {
		m.Registry.Spec.Etcd.Storage = &operatorv1alpha1.Storage{Size: resource.MustParse("100Gi")}
		m.Volumes.Members = []corev1.PersistentVolumeClaim{*claimOf("8Gi", "8Gi", "")}
	}
	killed := func(m *managed) {
		m.pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: operand.ComponentEtcd, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.NewTime(m.Now.Add(-time.Minute))}}}}
	}
	const size, memory = "data-fleet-etcd-0 has 8Gi", "; pod fleet-etcd-0: container etcd was killed at its memory limit"
	for what, test := range map[string]struct {
		changes []func(*managed)
		reason  string
		says    []string
	}{
		"as the spec asks for":        {nil, "", nil},
		"the volumes are smaller":     {[]func(*managed){taken}, operatorv1alpha1.ReasonVolumesDiffer, []string{size}},
		"and memory did not suffice":  {[]func(*managed){taken, killed}, operatorv1alpha1.ReasonOOMKilled, []string{size, memory}},
		"only memory did not suffice": {[]func(*managed){killed}, operatorv1alpha1.ReasonOOMKilled, []string{memory[len("; "):]}},
	} {
		m := newManaged(t, 1, append([]func(*managed){replaced(0)}, test.changes...)...)
		v := m.members(t.Context())
		if !v.Complete() || v.Reason != test.reason || test.reason == "" && v.Message != "" {
			t.Errorf("%s: %+v", what, v)
		}
		for _, words := range test.says {
			if !strings.Contains(v.Message, words) {
				t.Errorf("%s: it says %q, want %q", what, v.Message, words)
			}
		}
	}
}
