package membership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Keep records a volume that is kept, before it is: an operator that is killed in between must
// not leave one that no one knows of.
func Keep(ctx context.Context, record *identity.Store, volume etcd.KeptVolume) error {
	if slices.Contains(record.Record.Kept, volume) {
		return nil
	}
	now := *record.Record
	now.Kept = append(slices.Clone(now.Kept), volume)
	return record.Write(ctx, &now)
}

// release releases the oldest volume that is kept.
func (c *Change) release(ctx context.Context) verdict.Verdict {
	volume := c.Identity.Record.Kept[0]
	did, err := Release(ctx, c.Objects, c.Identity.Record, volume)
	if apierrors.IsConflict(err) {
		return c.changing("PersistentVolume %s was changed at the same time", volume.Name).In(verdict.AtOnce)
	}
	if err != nil {
		return verdict.Failed(err)
	}
	now := *c.Identity.Record
	now.Kept = slices.Clone(now.Kept[1:])
	if err := c.Identity.Write(ctx, &now); err != nil {
		return c.notRecorded(err)
	}
	return c.changing("%s", did).In(verdict.AtOnce)
}

// Release gives the old volume of a member that was replaced its reclaim policy back, if that
// was Delete, it is still the volume of the claim that is gone, its data is that of the etcd
// that there is now, and no one has changed the policy since. It says what was done, in an
// event, too. A volume that may not be changed is left to a person: nothing is to wait for it.
func Release(ctx context.Context, objects *operand.Objects, record *etcd.Record, volume etcd.KeptVolume) (string, error) {
	pv := &corev1.PersistentVolume{}
	err := objects.Live.Get(ctx, client.ObjectKey{Name: volume.Name}, pv)
	before, retained := pv.Annotations[operatorv1alpha1.AnnotationReclaimPolicy], pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("PersistentVolume %s is gone", volume.Name), nil
	case refused(err):
		return stays(objects, volume, err.Error()), nil
	case err != nil:
		return "", fmt.Errorf("read PersistentVolume %s of an etcd member that was replaced: %w", volume.Name, err)
	case !wasOf(objects, pv, volume):
		return stays(objects, volume, "it is not bound to the claim of that member any more"), nil
	case before == "" || !retained:
		return fmt.Sprintf("PersistentVolume %s has reclaim policy %s", pv.Name, pv.Spec.PersistentVolumeReclaimPolicy), nil
	case record.ClusterID == "" || volume.Cluster != record.ClusterID:
		return stays(objects, volume, fmt.Sprintf("its data is of the etcd cluster with ID %s, and the registry has another one now", volume.Cluster)), nil
	case before != volume.Policy || before != string(corev1.PersistentVolumeReclaimDelete):
		return stays(objects, volume, fmt.Sprintf("its reclaim policy was %s, and its annotation %s says %q: only Delete is brought back", volume.Policy, operatorv1alpha1.AnnotationReclaimPolicy, before)), nil
	}
	err = objects.Writer().Release(ctx, pv)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("PersistentVolume %s is gone", pv.Name), nil
	case refused(err):
		return stays(objects, volume, err.Error()), nil
	case err != nil:
		return "", err
	}
	said := fmt.Sprintf("PersistentVolume %s with the old data of etcd's claim %s has its reclaim policy %s again, since no member needs it and spec.deletionPolicy is Delete", pv.Name, pv.Spec.ClaimRef.Name, before)
	objects.Event(corev1.EventTypeNormal, "VolumeReleased", operatorv1alpha1.ConditionEtcdReady, "%s", said)
	return said, nil
}

// refused reports whether the host cluster refuses a request, and would do so again: a webhook
// may do that with any code.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}

// stays says of a volume that it is left to a person.
func stays(objects *operand.Objects, volume etcd.KeptVolume, why string) string {
	said := fmt.Sprintf("PersistentVolume %s with the old data of an etcd member that was replaced stays (%s): delete it when it is no longer needed", volume.Name, why)
	objects.Event(corev1.EventTypeWarning, "VolumeRetained", operatorv1alpha1.ConditionEtcdReady, "%s", said)
	return said
}

// wasOf reports whether a volume is still that of the claim that it was kept for, and that was
// the claim of a member of this registry: whoever can edit the record must not have the
// volume of another registry deleted.
func wasOf(objects *operand.Objects, pv *corev1.PersistentVolume, volume etcd.KeptVolume) bool {
	ref := pv.Spec.ClaimRef
	if ref == nil || string(ref.UID) != volume.Claim || ref.Namespace != objects.Registry.Namespace {
		return false
	}
	for ordinal := range Most {
		if ref.Name == contract.EtcdMemberClaim(contract.EtcdMember(objects.Registry.Name, ordinal)) {
			return true
		}
	}
	return false
}
