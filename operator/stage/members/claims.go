package members

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/verdict"
)

// deletedClaims returns the claims that someone has deleted of members that stay, by the names of
// these. Only a pod that uses it keeps such a claim: when that goes, the member begins empty.
func (s *Stage) deletedClaims() map[string]*corev1.PersistentVolumeClaim {
	out, record := map[string]*corev1.PersistentVolumeClaim{}, s.Identity.Record
	for name := range record.Members {
		i := slices.IndexFunc(s.Volumes.Members, func(c corev1.PersistentVolumeClaim) bool { return c.Name == contract.EtcdMemberClaim(name) })
		if i < 0 || record.Recovered.Pending() {
			continue // the operator deletes claims itself, and of a member that leaves once etcd has removed it
		}
		if claim := &s.Volumes.Members[i]; claim.DeletionTimestamp != nil {
			out[name] = claim
		}
	}
	return out
}

// claimsStay is done when no claim of a member that stays was deleted. The volume of one that was
// is kept, whatever its reclaim policy is, and nothing gives it that back: a person has deleted
// the claim, and may not have meant the data.
func (s *Stage) claimsStay(ctx context.Context) verdict.Verdict {
	deleted := s.deletedClaims()
	var says []string
	for _, name := range s.Identity.Members() {
		claim := deleted[name]
		if claim == nil {
			continue
		}
		kept := fmt.Sprintf("PersistentVolume %s with its data is kept", claim.Spec.VolumeName)
		if err := s.retain(ctx, claim); err != nil {
			kept = fmt.Sprintf("PersistentVolume %s with its data could not be kept: %s. Do that at once: kubectl patch pv %s -p '{\"spec\":{\"persistentVolumeReclaimPolicy\":\"Retain\"}}'", claim.Spec.VolumeName, err, claim.Spec.VolumeName)
		}
		says = append(says, fmt.Sprintf("%s of %s (%s)", claim.Name, name, kept))
	}
	if len(says) == 0 {
		return done
	}
	way := "have a new member take its place, one after the other: kubectl registry etcd replace MEMBER"
	if len(s.Identity.Record.Members) == 1 {
		way = "take a backup, since it is the only member, set spec.etcd.replicas to 3, have this member replaced when all three are ready (kubectl registry etcd replace MEMBER), and scale back"
	}
	return verdict.Waiting(operatorv1alpha1.ReasonClaimTerminating, "someone has deleted PersistentVolumeClaim %s: it goes as soon as the pod that uses it does, and the member begins empty. The operator does not evict that pod: do not delete it, and do not drain its node. Then %s", strings.Join(says, ", and "), way).In(verdict.Backstop)
}

// besides returns the verdict on members some of whose claims were deleted: that comes before
// what is only under way, and is added to what is wrong otherwise.
func (s *Stage) besides(claims, v verdict.Verdict) verdict.Verdict {
	switch {
	case claims.Complete():
		return v
	case v.Err == nil && (v.Complete() || v.Reason == operatorv1alpha1.ReasonProgressing || v.Reason == claims.Reason):
		if v.After > 0 && v.After < claims.After {
			claims.After = v.After
		}
		return claims.DegradedIf(s.found.State.Serves() == nil)
	}
	v.Message += "; besides, " + claims.Message
	return v
}

// retain has the volume of a claim that was deleted outlive it.
func (s *Stage) retain(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	pv := &corev1.PersistentVolume{}
	err := s.Live.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)
	switch {
	case claim.Spec.VolumeName == "" || apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID:
		return fmt.Errorf("it does not name that claim as its own")
	case pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain:
		return nil
	}
	if err := s.Writer().Retain(ctx, pv); err != nil {
		return err
	}
	s.Event(corev1.EventTypeWarning, "VolumeRetained", operatorv1alpha1.ConditionEtcdReady, "PersistentVolumeClaim %s of an etcd member was deleted, and is terminating: its PersistentVolume %s is kept", claim.Name, pv.Name)
	return nil
}

// claimDeleted is why a member is not evicted: its claim would go with the pod.
type claimDeleted struct{ claim string }

// Error names the claim.
func (e claimDeleted) Error() string {
	return fmt.Sprintf("its PersistentVolumeClaim %s was deleted, and goes when the pod does", e.claim)
}

// Reason implements verdict.Expected.
func (claimDeleted) Reason() string { return operatorv1alpha1.ReasonClaimTerminating }
