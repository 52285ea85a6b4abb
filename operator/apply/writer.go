package apply

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// A Writer makes all changes of one reconcile in the host cluster, but for those of
// the registry's own object. An Applier is one.
type Writer interface {
	// Err returns why this writer can't write, nil when it can.
	Err() error
	// ApplyFrom applies an object; see Applier.ApplyFrom.
	ApplyFrom(ctx context.Context, first, wanted *unstructured.Unstructured) error
	// Delete deletes an object of an owner, and reports whether it is gone.
	Delete(ctx context.Context, reference operatorv1alpha1.ObjectReference, owner string) (gone bool, err error)
	// Orphan deletes an object and leaves what that has made, unless another one has taken its
	// place.
	Orphan(ctx context.Context, object client.Object) error
	// Try has the host cluster say whether it would create an object, which is as it would be
	// then. Nothing is created.
	Try(ctx context.Context, object client.Object) error
	// Evict evicts a pod, unless another one has taken its place.
	Evict(ctx context.Context, pod *corev1.Pod) error
	// Resize has a claim request a size, unless someone else has changed the claim since it
	// was read. The claim is as it is then.
	Resize(ctx context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity) error
	// Retain has a volume outlive its claim, unless someone else has changed the volume
	// since it was read. The volume notes the reclaim policy that it had.
	Retain(ctx context.Context, volume *corev1.PersistentVolume) error
	// Release gives a volume the reclaim policy back that Retain has noted, unless someone
	// else has changed the volume since it was read.
	Release(ctx context.Context, volume *corev1.PersistentVolume) error
	// DeleteClaim deletes a claim, unless another one has taken its place.
	DeleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error
	// PatchStatus changes the status of an object, unless someone else has changed the
	// object since it was read as before.
	PatchStatus(ctx context.Context, before, after client.Object) error
}

// ErrReadOnly is the error of every change by ReadOnly.
var ErrReadOnly = errors.New("nothing is changed in this pass, since an earlier stage forbids it")

// IgnoreReadOnly returns the error of a change, but for that of a reconcile that may
// change nothing: a stage then proceeds with what is there.
func IgnoreReadOnly(err error) error {
	if errors.Is(err, ErrReadOnly) {
		return nil
	}
	return err
}

// ReadOnly is a Writer that can't write.
type ReadOnly struct{}

var _, _ Writer = (*Applier)(nil), ReadOnly{}

// Err returns ErrReadOnly.
func (ReadOnly) Err() error { return ErrReadOnly }

// ApplyFrom returns ErrReadOnly.
func (ReadOnly) ApplyFrom(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) error {
	return ErrReadOnly
}

// Delete returns ErrReadOnly.
func (ReadOnly) Delete(context.Context, operatorv1alpha1.ObjectReference, string) (bool, error) {
	return false, ErrReadOnly
}

// Orphan returns ErrReadOnly.
func (ReadOnly) Orphan(context.Context, client.Object) error { return ErrReadOnly }

// Try returns ErrReadOnly.
func (ReadOnly) Try(context.Context, client.Object) error { return ErrReadOnly }

// Evict returns ErrReadOnly.
func (ReadOnly) Evict(context.Context, *corev1.Pod) error { return ErrReadOnly }

// Resize returns ErrReadOnly.
func (ReadOnly) Resize(context.Context, *corev1.PersistentVolumeClaim, resource.Quantity) error {
	return ErrReadOnly
}

// Retain returns ErrReadOnly.
func (ReadOnly) Retain(context.Context, *corev1.PersistentVolume) error { return ErrReadOnly }

// Release returns ErrReadOnly.
func (ReadOnly) Release(context.Context, *corev1.PersistentVolume) error { return ErrReadOnly }

// DeleteClaim returns ErrReadOnly.
func (ReadOnly) DeleteClaim(context.Context, *corev1.PersistentVolumeClaim) error { return ErrReadOnly }

// PatchStatus returns ErrReadOnly.
func (ReadOnly) PatchStatus(context.Context, client.Object, client.Object) error { return ErrReadOnly }

// Err returns nil: an Applier can write.
func (a *Applier) Err() error { return nil }

// Evict evicts a pod, unless another one has taken its place. The host counts an
// eviction against the pod's PodDisruptionBudget.
func (a *Applier) Evict(ctx context.Context, pod *corev1.Pod) error {
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}}
	return client.IgnoreNotFound(a.client.SubResource("eviction").Create(ctx, pod, eviction))
}

// Orphan deletes an object and leaves what that has made, such as the pods of a StatefulSet,
// unless another one has taken its place.
func (a *Applier) Orphan(ctx context.Context, object client.Object) error {
	kind, err := apiutil.GVKForObject(object, a.client.Scheme())
	if err != nil {
		return err
	}
	a.forget(operatorv1alpha1.ObjectReference{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()})
	uid := object.GetUID()
	return client.IgnoreNotFound(a.client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &uid}))
}

// Try has the host cluster say whether it would create an object, with its quotas and its
// admission. The object is as it would be then; nothing is created.
func (a *Applier) Try(ctx context.Context, object client.Object) error {
	return a.client.Create(ctx, object, client.DryRunAll, FieldOwner)
}

// Resize has a claim request a size, unless someone else has changed the claim since it
// was read. The claim is as it is then, or as it was after an error.
func (a *Applier) Resize(ctx context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity) error {
	grown := claim.DeepCopy()
	grown.Spec.Resources.Requests[corev1.ResourceStorage] = size
	if err := a.client.Patch(ctx, grown, client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{}), FieldOwner); err != nil {
		return err
	}
	*claim = *grown
	return nil
}

// Retain has a volume outlive its claim, unless someone else has changed the volume since it
// was read. The volume notes the reclaim policy that it had, in the same change: without the
// note, no one could tell it from a volume that was always to be kept.
func (a *Applier) Retain(ctx context.Context, volume *corev1.PersistentVolume) error {
	retained := volume.DeepCopy()
	if before := volume.Spec.PersistentVolumeReclaimPolicy; before != corev1.PersistentVolumeReclaimRetain {
		metav1.SetMetaDataAnnotation(&retained.ObjectMeta, operatorv1alpha1.AnnotationReclaimPolicy, string(before))
	}
	retained.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	return a.client.Patch(ctx, retained, client.MergeFromWithOptions(volume, client.MergeFromWithOptimisticLock{}), FieldOwner)
}

// Release gives a volume the reclaim policy back that Retain has noted, unless someone else
// has changed the volume since it was read. Without a note it changes nothing.
func (a *Applier) Release(ctx context.Context, volume *corev1.PersistentVolume) error {
	before := volume.Annotations[operatorv1alpha1.AnnotationReclaimPolicy]
	if before == "" {
		return nil
	}
	released := volume.DeepCopy()
	delete(released.Annotations, operatorv1alpha1.AnnotationReclaimPolicy)
	released.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimPolicy(before)
	return a.client.Patch(ctx, released, client.MergeFromWithOptions(volume, client.MergeFromWithOptimisticLock{}), FieldOwner)
}

// DeleteClaim deletes a claim, unless another one has taken its place. One that a pod uses is
// there until that pod is gone.
func (a *Applier) DeleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	return client.IgnoreNotFound(a.client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}))
}

// PatchStatus changes the status of an object, unless someone else has changed the
// object since it was read as before.
func (a *Applier) PatchStatus(ctx context.Context, before, after client.Object) error {
	return a.client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
