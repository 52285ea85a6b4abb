package apply

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestReadOnly has no way to write.
func TestReadOnly(t *testing.T) {
	w := ReadOnly{}
	_, deleted := w.Delete(t.Context(), operatorv1alpha1.ObjectReference{}, "")
	for what, err := range map[string]error{
		"Err": w.Err(), "ApplyFrom": w.ApplyFrom(t.Context(), nil, &unstructured.Unstructured{}), "Delete": deleted, "Orphan": w.Orphan(t.Context(), &corev1.Pod{}),
		"Evict": w.Evict(t.Context(), &corev1.Pod{}), "Retain": w.Retain(t.Context(), &corev1.PersistentVolume{}), "Release": w.Release(t.Context(), &corev1.PersistentVolume{}), "PatchStatus": w.PatchStatus(t.Context(), &corev1.Pod{}, &corev1.Pod{}),
	} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestWriter evicts a pod that may be gone, and changes no status that someone else has
// changed since it was read.
func TestWriter(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd-0"}}
	c := fake.NewClientBuilder().WithObjects(pod).WithStatusSubresource(pod).Build()
	w := New(c, c)
	read := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), read); err != nil {
		t.Fatal(err)
	}
	stale := read.DeepCopy()
	for _, message := range []string{"first", "late"} {
		before := stale.DeepCopy()
		after := before.DeepCopy()
		after.Status.Message = message
		err := w.PatchStatus(t.Context(), before, after)
		if message == "first" && err != nil || message == "late" && !apierrors.IsConflict(err) {
			t.Errorf("the %s change: %v", message, err)
		}
	}
	for range 2 {
		if err := w.Evict(t.Context(), read); err != nil {
			t.Error(err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), read); !apierrors.IsNotFound(err) {
		t.Errorf("the pod is not evicted: %v", err)
	}
}

// TestRetain keeps a volume and gives its reclaim policy back, which the volume itself notes;
// not where someone else has changed it meanwhile, and nothing where there is no note.
func TestRetain(t *testing.T) {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete}}
	c := fake.NewClientBuilder().WithObjects(volume).Build()
	w := New(c, c)
	read := func() *corev1.PersistentVolume {
		out := &corev1.PersistentVolume{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(volume), out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	stale := read()
	for range 2 { // the second time, it must not note that it was Retain
		if err := w.Retain(t.Context(), read()); err != nil {
			t.Fatal(err)
		}
		if now := read(); now.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || now.Annotations[operatorv1alpha1.AnnotationReclaimPolicy] != "Delete" {
			t.Fatalf("it is %+v", now)
		}
	}
	stale.Annotations = map[string]string{operatorv1alpha1.AnnotationReclaimPolicy: "Recycle"}
	if err := w.Release(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("what someone else has changed: %v", err)
	}
	for range 2 {
		if err := w.Release(t.Context(), read()); err != nil {
			t.Fatal(err)
		}
		if now := read(); now.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || len(now.Annotations) > 0 {
			t.Fatalf("it is %+v", now)
		}
	}
}
