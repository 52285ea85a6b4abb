package membership

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/verdict"
)

// retained reports whether the volume of a claim outlives it, or there is none.
func (c *Change) retained(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	if claim.Spec.VolumeName == "" {
		return true, nil
	}
	pv := &corev1.PersistentVolume{}
	err := c.Live.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain, err
}

// retain has the volume of a claim outlive it.
func (c *Change) retain(ctx context.Context, ordinal int, claim *corev1.PersistentVolumeClaim) verdict.Verdict {
	pv := &corev1.PersistentVolume{}
	if err := c.Live.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv); err != nil {
		return c.notRetained(ordinal, claim, err)
	}
	if ref := pv.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
		return c.blocked("PersistentVolume %s does not name PersistentVolumeClaim %s as its claim, so it is not known whose data it has: see why, and delete the claim and pod %s by hand when the data is safe or not needed", pv.Name, claim.Name, c.member(ordinal))
	}
	cluster := c.Identity.Record.ClusterID
	if abandoned := c.Identity.Record.Abandons(c.member(ordinal)); abandoned.UID == string(claim.UID) {
		cluster = abandoned.Cluster
	}
	policy := pv.Spec.PersistentVolumeReclaimPolicy
	if err := Keep(ctx, c.Identity, etcd.KeptVolume{Name: pv.Name, Claim: string(claim.UID), Policy: string(policy), Cluster: cluster}); err != nil {
		return c.notRecorded(err)
	}
	if err := c.Writer().Retain(ctx, pv); err != nil {
		return c.notRetained(ordinal, claim, err)
	}
	until := "delete it when it is no longer needed"
	if policy == corev1.PersistentVolumeReclaimDelete {
		until = fmt.Sprintf("as soon as spec.deletionPolicy is Delete and the new member is ready, it gets its reclaim policy Delete back, and the host cluster deletes it; to keep it for good: kubectl annotate pv %s %s-", pv.Name, operatorv1alpha1.AnnotationReclaimPolicy)
	}
	c.Event(corev1.EventTypeNormal, "VolumeRetained", operatorv1alpha1.ConditionEtcdReady, "PersistentVolume %s with the old data of etcd member %s is kept when its claim is deleted; %s", pv.Name, c.member(ordinal), until)
	return c.changing("PersistentVolume %s with the old data of %s is kept", pv.Name, c.member(ordinal)).In(verdict.AtOnce)
}

// notRetained is the verdict on a volume of which it can't be seen to that it outlives its
// claim.
func (c *Change) notRetained(ordinal int, claim *corev1.PersistentVolumeClaim, err error) verdict.Verdict {
	if !apierrors.IsForbidden(err) {
		return verdict.Failed(fmt.Errorf("keep the volume of PersistentVolumeClaim %s: %w", claim.Name, err))
	}
	namespace, pv := c.Registry.Namespace, claim.Spec.VolumeName
	return c.blocked("etcd member %s was removed and gets a new volume, but the operator may not read and patch persistentvolumes, so it can't see to it that the old data outlives its claim: kubectl patch pv %s -p '{\"spec\":{\"persistentVolumeReclaimPolicy\":\"Retain\"}}' && kubectl -n %s delete --wait=false pvc %s && kubectl -n %s delete pod %s",
		c.member(ordinal), pv, namespace, claim.Name, namespace, c.member(ordinal))
}
