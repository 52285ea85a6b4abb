package members

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
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

// TestGrow is about claims that are smaller than the spec asks for: what the stage has them
// request, and what it says of those that can't grow.
func TestGrow(t *testing.T) {
	class := func(name string, expands *bool) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, AllowVolumeExpansion: expands}
	}
	for _, test := range []struct {
		what, class string
		change      func(*managed)
		requests    string
		reason      string
		says        []string
	}{
		{"it was taken over so small", "grows", func(m *managed) { m.Volumes.Template = resource.MustParse("100Gi") }, "8Gi", operatorv1alpha1.ReasonVolumesDiffer, []string{"set spec.etcd.storage.size to more than 100Gi"}},
		{"its class allows it", "grows", nil, "100Gi", operatorv1alpha1.ReasonVolumesGrowing, []string{"data-fleet-etcd-0 has 8Gi (100Gi requested)", "it is raised when all volumes have grown"}},
		{"its class does not", "fixed", nil, "8Gi", operatorv1alpha1.ReasonVolumesDiffer, []string{"quota follows the smallest volume and is 4096 MiB", "PersistentVolumeClaim data-fleet-etcd-0 can't grow, since its StorageClass fixed does not allow it: set allowVolumeExpansion there", "or set spec.etcd.storage.size to 8Gi"}},
		{"its class says no", "no", nil, "8Gi", operatorv1alpha1.ReasonVolumesDiffer, []string{"its StorageClass no does not allow it"}},
		{"its class is gone", "gone", nil, "8Gi", operatorv1alpha1.ReasonVolumesDiffer, []string{"its StorageClass gone does not exist"}},
		{"it has no class", "", nil, "8Gi", operatorv1alpha1.ReasonVolumesDiffer, []string{"data-fleet-etcd-0 has no StorageClass"}},
		{"the host refuses", "grows", func(m *managed) { m.refusal = errors.New("exceeded quota: team") }, "8Gi", operatorv1alpha1.ReasonVolumesDiffer, []string{"of StorageClass grows can't grow to 100Gi: exceeded quota: team, or set"}},
		{"nothing may be changed", "grows", func(m *managed) { m.Freeze("spec.paused is false") }, "8Gi", operatorv1alpha1.ReasonVolumesDiffer, []string{"has 8Gi, and spec.etcd.storage.size is 100Gi"}},
	} {
		m := newManaged(t, 1, replaced(0))
		m.Registry.Spec.Etcd.Storage = &operatorv1alpha1.Storage{Size: resource.MustParse("100Gi")}
		claim := claimOf("8Gi", "8Gi", test.class)
		for _, object := range []client.Object{claim, class("grows", new(true)), class("fixed", nil), class("no", new(false))} {
			if err := m.Client.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		m.Volumes.Members, m.Volumes.Template = []corev1.PersistentVolumeClaim{*claim}, resource.MustParse("8Gi")
		if test.change != nil {
			test.change(m)
		}
		m.grow(t.Context())
		v := m.members(t.Context())
		if !v.Complete() || v.Reason != test.reason {
			t.Errorf("%s: %+v", test.what, v)
		}
		for _, words := range test.says {
			if !strings.Contains(v.Message, words) {
				t.Errorf("%s: it says %q, want %q", test.what, v.Message, words)
			}
		}
		if err := m.Live.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Fatal(err)
		}
		if got := claim.Spec.Resources.Requests[corev1.ResourceStorage]; got.String() != test.requests {
			t.Errorf("%s: it requests %s, want %s", test.what, got.String(), test.requests)
		}
		if got := m.Registry.Status.Etcd.VolumeSize; got == nil || got.String() != "8Gi" {
			t.Errorf("%s: status.etcd.volumeSize is %v", test.what, got)
		}
	}
}

// TestGrowConflict has a claim change between the pass's read and its write: that it can't
// grow is not said, and it is tried again soon.
func TestGrowConflict(t *testing.T) {
	m := newManaged(t, 1, replaced(0))
	m.Registry.Spec.Etcd.Storage = &operatorv1alpha1.Storage{Size: resource.MustParse("100Gi")}
	claim := claimOf("8Gi", "8Gi", "grows")
	for _, object := range []client.Object{claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "grows"}, AllowVolumeExpansion: new(true)}} {
		if err := m.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	m.Volumes.Members, m.Volumes.Template = []corev1.PersistentVolumeClaim{*claim}, resource.MustParse("8Gi")
	claim.Labels = map[string]string{"changed": "meanwhile"}
	if err := m.Client.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if again := m.grow(t.Context()); again != verdict.Soon {
		t.Errorf("it is tried again in %s", again)
	}
	if v := m.members(t.Context()); !v.Complete() || strings.Contains(v.Message, "can't grow") {
		t.Errorf("%+v", v)
	}
	m.Volumes.Members = []corev1.PersistentVolumeClaim{*claim}
	if again := m.grow(t.Context()); again != 0 {
		t.Errorf("what has succeeded is tried again in %s", again)
	}
}
