// Package recovery takes a registry's own etcd out of a lost quorum, with the copy of its data
// that a person has approved. What is recorded of etcd decides, and nothing else: a recovery
// continues whatever becomes of the approval, the operator, or the ClusterRegistry.
//
// All servers and members are stopped first, and nothing is done before the last of their pods
// has terminated for certain: one that is cut off would otherwise serve what is given up. Then
// the record says who the new etcd is, which has one member, and etcd's pod makes its data: of
// a member's by its guard, of a backup's by the init containers that restore it. When etcd
// serves that, the servers start, and etcd grows to its size by package membership.
package recovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/pages"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Recovery is the recovery that is recorded, in one reconcile. All fields are required.
type Recovery struct {
	*operand.Objects
	// Identity is the record, whose recovery is under way.
	Identity *identity.Store
	// State is what etcd said, and Members what the stage of etcd found.
	State   etcd.State
	Members verdict.Verdict
	// Rolling says which members are being replaced by pods of the latest template, nothing
	// when none is.
	Rolling string
}

// Step takes the recovery one step further. It is done when etcd serves the data.
func (r *Recovery) Step(ctx context.Context) verdict.Verdict {
	if r.ReadOnly() {
		return r.waiting("nothing is changed until %s", r.ReadOnlyUntil())
	}
	if r.recovered().Phase == operatorv1alpha1.RecoveryStopping {
		return r.stop(ctx)
	}
	return r.restore(ctx)
}

func (r *Recovery) recovered() *etcd.Recovered { return r.Identity.Record.Recovered }

// waiting is the verdict on what comes without a person, or is said to one.
func (r *Recovery) waiting(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonRecovering, format, args...).In(verdict.Soon)
}

// stop waits until nothing runs any more that has served the data of before, and then records
// who the new etcd is.
func (r *Recovery) stop(ctx context.Context) verdict.Verdict {
	if v := r.stopped(ctx); !v.Complete() {
		return v
	}
	recovered := r.recovered()
	ordinal, peer := r.first()
	if ordinal < 0 {
		return r.waiting("ConfigMap %s, the record of etcd's identity, names %q as the member that etcd begins with, and there is none of that name: correct that in its key recovered", r.Name(contract.IdentitySuffix), recovered.Member).In(verdict.Backstop)
	}
	if v := r.claim(ctx, ordinal); !v.Complete() {
		return v
	}
	if err := r.Identity.Write(ctx, etcd.RecoveryRecord(*r.Identity.Record, ordinal, peer)); err != nil {
		return r.notRecorded(err)
	}
	r.Event(corev1.EventTypeNormal, operatorv1alpha1.ReasonRecovering, operatorv1alpha1.ConditionEtcdReady, "no server and no etcd member runs any more; a new etcd with the member %s begins with the data of %s", recovered.Member, Copy(recovered))
	return r.waiting("a new etcd begins with the data of %s", Copy(recovered)).In(verdict.AtOnce)
}

// Copy names the copy of the data, for a person.
func Copy(recovered *etcd.Recovered) string {
	if recovered.From == operatorv1alpha1.RecoverFromBackup {
		return "backup " + recovered.Name
	}
	return "member " + recovered.Name
}

// first returns the ordinal of the member that the new etcd begins with, -1 for a name of none,
// and its URL for other members.
func (r *Recovery) first() (ordinal int, peerURL string) {
	for ordinal := range membership.Most {
		if name := contract.EtcdMember(r.Registry.Name, ordinal); name == r.recovered().Member {
			return ordinal, render.EtcdMembers(r.Registry, []string{name})[0].PeerURL()
		}
	}
	return -1, ""
}

// stopped is done when all servers and members have terminated for certain. That is read from
// the host cluster itself: what a cache lacks may be there still.
func (r *Recovery) stopped(ctx context.Context) verdict.Verdict {
	set, deployment := &appsv1.StatefulSet{}, &appsv1.Deployment{}
	for suffix, object := range map[string]client.Object{contract.EtcdSuffix: set, contract.ServerSuffix: deployment} {
		if err := r.Live.Get(ctx, r.Key(suffix), object); client.IgnoreNotFound(err) != nil {
			return verdict.Failed(err)
		}
	}
	if set.Name != "" && (set.Spec.Replicas == nil || *set.Spec.Replicas > 0) { // why that is so still, its stage says
		v := r.waiting("the servers and etcd members are being stopped: %s", r.Members.Message)
		v.Err = r.Members.Err
		return v
	}
	runs := set.Name != "" && (set.Status.ObservedGeneration < set.Generation || set.Status.Replicas > 0) || deployment.Name != "" && (deployment.Spec.Replicas == nil || *deployment.Spec.Replicas > 0 || deployment.Status.ObservedGeneration < deployment.Generation || deployment.Status.Replicas > 0)
	var left *corev1.Pod
	err := pages.Each(ctx, r.Live, &corev1.PodList{}, func(page *corev1.PodList) bool {
		if i := slices.IndexFunc(page.Items, mayRun); i >= 0 {
			left = &page.Items[i]
		}
		return left == nil
	}, client.InNamespace(r.Registry.Namespace), client.MatchingLabels{operatorv1alpha1.LabelInstance: r.Registry.Name})
	switch {
	case err != nil:
		return verdict.Failed(err)
	case left != nil:
		return r.terminates(left)
	case runs:
		return r.waiting("the servers and etcd members are being stopped")
	}
	return verdict.Verdict{}
}

// mayRun reports whether a pod is a server or an etcd member that has not ended for certain, by
// the word of its kubelet.
func mayRun(pod corev1.Pod) bool {
	ended := (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded) && pod.DeletionTimestamp == nil
	component := pod.Labels[operatorv1alpha1.LabelComponent]
	return !ended && (component == operand.ComponentEtcd || component == operand.ComponentServer)
}

// hangs is how long after its grace period a pod is taken for one whose node is gone.
const hangs = 2 * time.Minute

// terminates says what is waited for until a pod has terminated for certain. A pod that is
// deleted by force is gone from the host cluster before it has.
func (r *Recovery) terminates(pod *corev1.Pod) verdict.Verdict {
	if pod.DeletionTimestamp != nil && r.Now.Sub(pod.DeletionTimestamp.Time) > hangs {
		if pod.Name == r.recovered().Member && r.recovered().From == operatorv1alpha1.RecoverFromMember {
			return r.waiting("pod %s, with whose data etcd is to continue, does not terminate on node %s. Bring that node back, or, when you know that the pod does not run any more and its volume can be attached elsewhere, taint the node: kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute. Do not delete the pod by force, and not the Node: what is on its disk would count as lost", pod.Name, pod.Spec.NodeName, pod.Spec.NodeName)
		}
		return r.waiting("pod %s does not terminate: node %s, on which it is, may be gone, and the pod may still run there. Do not delete it by force. When you know that it does not run any more, delete that Node, or taint it: kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", pod.Name, pod.Spec.NodeName, pod.Spec.NodeName)
	}
	return r.waiting("all servers and etcd members are stopped before anything is recovered: pod %s terminates next", pod.Name)
}

// claim is done when the claim of the first member is as the recovery needs it: that of the
// member whose data is used is there, and one that a backup is restored to has made way, while
// its volume is kept.
func (r *Recovery) claim(ctx context.Context, ordinal int) verdict.Verdict {
	recovered := r.recovered()
	claim := &corev1.PersistentVolumeClaim{}
	claim.Name = contract.EtcdMemberClaim(recovered.Member)
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Registry.Namespace, Name: claim.Name}, claim)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return verdict.Failed(err)
	case recovered.From == operatorv1alpha1.RecoverFromBackup && apierrors.IsNotFound(err):
		return verdict.Verdict{}
	case recovered.From == operatorv1alpha1.RecoverFromBackup:
		change := &membership.Change{Objects: r.Objects, Identity: r.Identity, State: r.State}
		v := change.Vacate(ctx, ordinal, claim)
		v.Reason = operatorv1alpha1.ReasonRecovering
		return v
	case apierrors.IsNotFound(err), claim.DeletionTimestamp != nil:
		return r.waiting("PersistentVolumeClaim %s of member %s, with whose data etcd is to continue, was deleted: bring it back with its volume, or set spec.recovery.from and name to another copy", claim.Name, recovered.Member).In(verdict.Backstop)
	}
	return verdict.Verdict{}
}

// restore waits until the new etcd serves.
func (r *Recovery) restore(ctx context.Context) verdict.Verdict {
	recovered, record := r.recovered(), *r.Identity.Record
	switch {
	case record.Restored.Pending() || !r.State.Joined(record.Identity, recovered.Member):
		return r.waiting("etcd begins with the data of %s: %s", Copy(recovered), r.Members.Message)
	case r.Rolling != "" && recovered.From == operatorv1alpha1.RecoverFromBackup: // it has init containers that restore
		return r.waiting("etcd serves the data of %s: %s: %s", Copy(recovered), r.Rolling, r.Members.Message)
	}
	if err := r.release(ctx, recovered); err != nil { // before the record says that nothing is left to do
		return verdict.Failed(err)
	}
	record.Recovered = recovered.Done(max(0, r.State.Revision()-contract.RevisionBump), r.Now)
	if err := r.Identity.Write(ctx, &record); err != nil {
		return r.notRecorded(err)
	}
	next := "The servers start"
	if replicas := r.Registry.Spec.Etcd.Replicas; int(replicas) > len(record.Members) {
		next += fmt.Sprintf(", and etcd grows to %d members", replicas)
	}
	r.Event(corev1.EventTypeNormal, "Recovered", operatorv1alpha1.ConditionEtcdReady, "etcd has recovered from the lost quorum %s with the data of %s, which ended with revision %d; the newest revision that was known is %d. %s. The volumes of members whose data is not used are kept",
		recovered.ID, Copy(recovered), record.Recovered.Ended, recovered.LastRevision, next)
	return verdict.Verdict{}.In(verdict.AtOnce)
}

// notRecorded is the verdict on a record that could not be written.
func (r *Recovery) notRecorded(err error) verdict.Verdict {
	if apierrors.IsConflict(err) {
		return r.waiting("ConfigMap %s, the record of etcd's identity, was changed at the same time", r.Name(contract.IdentitySuffix)).In(verdict.AtOnce)
	}
	return verdict.Failed(fmt.Errorf("record the recovery of etcd: %w", err))
}
