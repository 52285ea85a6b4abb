package recovery

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Retain has the volumes of all members outlive their claims, before the first pod is stopped:
// only a pod that uses it keeps a claim that someone has deleted. It is done when they do. A
// member whose claim is being deleted, or is gone, can't be the one whose data is used: its pod
// would come back with another volume.
func Retain(ctx context.Context, o *operand.Objects, record *identity.Store, approved operatorv1alpha1.Recovery) verdict.Verdict {
	for ordinal := range membership.Most {
		name := contract.EtcdMember(o.Registry.Name, ordinal)
		claim := &corev1.PersistentVolumeClaim{}
		err := o.Live.Get(ctx, client.ObjectKey{Namespace: o.Registry.Namespace, Name: contract.EtcdMemberClaim(name)}, claim)
		used := approved.From == operatorv1alpha1.RecoverFromMember && approved.Name == name
		switch {
		case client.IgnoreNotFound(err) != nil:
			return verdict.Failed(err)
		case used && err != nil:
			return held("PersistentVolumeClaim %s of %s, which spec.recovery names, does not exist: name another copy of the data", contract.EtcdMemberClaim(name), name)
		case used && claim.DeletionTimestamp != nil:
			return held("PersistentVolumeClaim %s of %s, which spec.recovery names, was deleted, and goes when its pod is stopped: its data could not be used. Name another copy; or keep its PersistentVolume %s, which has the data (reclaim policy Retain), and have someone who knows etcd save it", contract.EtcdMemberClaim(name), name, claim.Spec.VolumeName)
		case err != nil || claim.Spec.VolumeName == "":
			continue
		}
		if err := retain(ctx, o, record, claim, !used); err != nil {
			return held("the volumes of all members are kept before anything is stopped, and that of claim %s could not be: %s. Set its reclaim policy: kubectl patch pv %s -p '{\"spec\":{\"persistentVolumeReclaimPolicy\":\"Retain\"}}'", claim.Name, err, claim.Spec.VolumeName)
		}
	}
	return verdict.Verdict{}
}

func held(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonQuorumLost, format, args...).In(verdict.Backstop)
}

// retain has the volume of a claim outlive it. That of a member whose data is not used is
// recorded before, as one of a member that is replaced.
func retain(ctx context.Context, o *operand.Objects, record *identity.Store, claim *corev1.PersistentVolumeClaim, abandoned bool) error {
	pv := &corev1.PersistentVolume{}
	err := o.Live.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain:
		return nil
	case pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID:
		return fmt.Errorf("PersistentVolume %s does not name it as its claim", pv.Name)
	}
	cluster := record.Record.ClusterID
	if before := record.Record.Recovered; before.Pending() {
		cluster = before.Cluster
	}
	if abandoned {
		kept := etcd.KeptVolume{Name: pv.Name, Claim: string(claim.UID), Policy: string(pv.Spec.PersistentVolumeReclaimPolicy), Cluster: cluster}
		if err := membership.Keep(ctx, record, kept); err != nil {
			return err
		}
	}
	return o.Writer().Retain(ctx, pv)
}

// release gives the volume of the member whose data is used its reclaim policy back: it is that
// of a member like all others again. One that may not be changed stays as it is.
func (r *Recovery) release(ctx context.Context, recovered *etcd.Recovered) error {
	if recovered.From != operatorv1alpha1.RecoverFromMember {
		return nil
	}
	claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Registry.Namespace, Name: contract.EtcdMemberClaim(recovered.Member)}, claim)
	if err != nil || claim.Spec.VolumeName == "" {
		return client.IgnoreNotFound(err)
	}
	err = r.Live.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)
	kept := slices.ContainsFunc(r.Identity.Record.Kept, func(v etcd.KeptVolume) bool { return v.Name == claim.Spec.VolumeName })
	if err == nil && !kept && pv.Annotations[operatorv1alpha1.AnnotationReclaimPolicy] != "" && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID {
		err = r.Writer().Release(ctx, pv)
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
