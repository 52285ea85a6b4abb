package membership

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/volumes"
)

// classes observes which members are to move since their claims are of another StorageClass
// than the spec asks for, and whether the StatefulSet makes claims of that class. Nothing
// moves to a class that does not exist, or where that can't be known; and none at all where a
// claim was made of another class although the StatefulSet asked for this one, which would be
// so again. Why is noted. Beside another operation, such as an upgrade, volumes stay.
func (c *Change) classes(ctx context.Context, seen *plan.Observed, record plan.Record, claims map[int]*corev1.PersistentVolumeClaim) error {
	wanted := render.EtcdClass(c.Registry)
	if c.Repair || wanted == "" && !c.stuck(claims[record.Joining]) {
		return nil
	}
	// Not from the cache, which has no claim templates.
	set := &appsv1.StatefulSet{}
	if err := c.Live.Get(ctx, c.Key(contract.EtcdSuffix), set); err != nil {
		return client.IgnoreNotFound(err)
	}
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	if wanted == "" {
		c.unclassed(seen, record.Joining, set, claims[record.Joining])
		return nil
	}
	var others []int
	for ordinal := range c.spec().Replicas {
		if claim := claims[ordinal]; claim != nil && claim.DeletionTimestamp == nil && volumes.OtherClass(c.Registry, claim) {
			others = append(others, ordinal)
		}
	}
	if made(set) == wanted && len(others) == 0 {
		return nil
	}
	lacks, err := c.lacksClass(ctx, wanted)
	if c.unmoved = lacks; lacks != "" || err != nil {
		return err
	}
	if seen.Recreate = made(set) != wanted; seen.Recreate {
		return nil
	}
	for _, ordinal := range others {
		if claim := claims[ordinal]; claim.CreationTimestamp.After(set.CreationTimestamp.Time) {
			c.unmoved = fmt.Sprintf("PersistentVolumeClaim %s is of StorageClass %q, although it was made when StatefulSet %s asked for %s already, so no etcd member is moved to that class: find out what changes the class, such as an admission webhook, and then: kubectl registry etcd replace -n %s %s", claim.Name, volumes.Class(claim), set.Name, wanted, c.Registry.Namespace, c.member(ordinal))
			return nil
		}
	}
	if record.Joining == plan.None && record.Leaving == plan.None && len(others) > 0 {
		if c.unmoved, err = c.tryClaim(ctx, set); c.unmoved != "" || err != nil {
			return err
		}
	}
	for _, ordinal := range others {
		if claim := claims[ordinal]; seen.Moves[ordinal] == "" {
			seen.Moves[ordinal] = fmt.Sprintf("its claim %s is of StorageClass %q, and spec.etcd.storage.storageClassName is %s", claim.Name, volumes.Class(claim), wanted)
		}
	}
	return nil
}

// stuck reports whether the claim of a member that joins has waited for a volume for so long
// that there may be no way to make one.
func (c *Change) stuck(claim *corev1.PersistentVolumeClaim) bool {
	return claim != nil && claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" && c.Now.Sub(claim.CreationTimestamp.Time) >= stale
}

// unclassed observes what is to be done where the spec names no StorageClass any more, and the
// claim of a member that joins gets no volume: it is made again, of the default class.
func (c *Change) unclassed(seen *plan.Observed, joining int, set *appsv1.StatefulSet, claim *corev1.PersistentVolumeClaim) {
	if seen.Recreate = made(set) != ""; !seen.Recreate && claim.CreationTimestamp.Before(&set.CreationTimestamp) {
		seen.Moves[joining] = fmt.Sprintf("its claim %s of StorageClass %q has no volume, and spec.etcd.storage.storageClassName names no class", claim.Name, volumes.Class(claim))
	}
}

// made returns the StorageClass of the claims that the StatefulSet makes.
func made(set *appsv1.StatefulSet) string {
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return ""
	}
	return volumes.Class(&set.Spec.VolumeClaimTemplates[0])
}

// lacksClass says why members can't move to a StorageClass, nothing when they can.
func (c *Change) lacksClass(ctx context.Context, name string) (string, error) {
	class := &storagev1.StorageClass{}
	err := c.Live.Get(ctx, client.ObjectKey{Name: name}, class)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("spec.etcd.storage.storageClassName is %s, and there is no StorageClass of that name in the host cluster: create it, or change the field back; until then, all etcd members keep their volumes", name), nil
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("spec.etcd.storage.storageClassName is %s, and the operator may not get StorageClasses, so it can't see whether there is one of that name: allow it, or change the field back; until then, all etcd members keep their volumes", name), nil
	case err != nil:
		return "", err
	case class.DeletionTimestamp != nil:
		return fmt.Sprintf("spec.etcd.storage.storageClassName is %s, and StorageClass %s is being deleted: name another one; until then, all etcd members keep their volumes", name, name), nil
	}
	return "", nil
}

// unlessUnmoved returns the step to take: what is asked for of classes and can't be done is
// said when nothing else is to be done.
func (c *Change) unlessUnmoved(step plan.Step) plan.Step {
	if step.Action != plan.Done || c.unmoved == "" {
		return step
	}
	return plan.Step{Action: plan.Hold, Ordinal: plan.None, Message: c.unmoved}
}

// recreate deletes the StatefulSet without its pods. The next reconcile makes it again, by
// what the spec asks for, and it takes the pods over.
func (c *Change) recreate(ctx context.Context) verdict.Verdict {
	set := &appsv1.StatefulSet{}
	err := c.Live.Get(ctx, c.Key(contract.EtcdSuffix), set)
	if client.IgnoreNotFound(err) != nil {
		return verdict.Failed(err)
	}
	if err != nil || set.DeletionTimestamp != nil || made(set) == render.EtcdClass(c.Registry) {
		return c.changing("StatefulSet %s is recreated", c.Name(contract.EtcdSuffix)) // the cache is late
	}
	if err := c.Writer().Err(); err != nil {
		return c.changing("nothing is changed until %s", c.ReadOnlyUntil()).In(verdict.Vigil)
	}
	if refusal, err := c.tryStatefulSet(ctx, set); refusal != "" || err != nil {
		return c.tried(refusal, err)
	}
	// Pods without a StatefulSet are not made again: nothing may stop before that is.
	if c.Identity.Record.Recreating != string(set.UID) {
		now := *c.Identity.Record
		now.Recreating = string(set.UID)
		if err := c.Identity.Write(ctx, &now); err != nil {
			return c.notRecorded(err)
		}
	}
	if err := c.Writer().Orphan(ctx, set); err != nil {
		return verdict.Failed(fmt.Errorf("delete StatefulSet %s without its pods: %w", set.Name, err))
	}
	class := "StorageClass " + render.EtcdClass(c.Registry)
	if render.EtcdClass(c.Registry) == "" {
		class = "the default StorageClass"
	}
	c.Event(corev1.EventTypeNormal, "StatefulSetRecreated", operatorv1alpha1.ConditionEtcdReady, "StatefulSet %s is deleted without its pods, and recreated to make claims of %s: claim templates are immutable", set.Name, class)
	return c.changing("StatefulSet %s is recreated without its pods, to make claims of %s", set.Name, class).In(verdict.AtOnce)
}
