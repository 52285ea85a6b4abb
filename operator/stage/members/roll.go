package members

import (
	"context"
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/placement"
	"github.com/clusterregistry/operator/operator/turn"
	"github.com/clusterregistry/operator/operator/verdict"
)

// settled is how long members must have served before the next one is replaced:
// as long as etcd itself waits before it calls a connection healthy.
const settled = 5 * time.Second

// outdatedPods returns the names of the pods that are not made from the newest
// template.
func outdatedPods(set *appsv1.StatefulSet, pods []corev1.Pod) []string {
	var out []string
	for _, pod := range pods {
		if set.Status.UpdateRevision != "" && pod.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision {
			out = append(out, pod.Name)
		}
	}
	return out
}

// currentPods returns the names of the pods that are made from the template that
// was applied last, none as long as its revision is not known.
func currentPods(set *appsv1.StatefulSet, pods []corev1.Pod, outdated []string) []string {
	var out []string
	for _, pod := range pods {
		if set.Status.ObservedGeneration >= set.Generation && !slices.Contains(outdated, pod.Name) {
			out = append(out, pod.Name)
		}
	}
	return out
}

// roll is what the replacement of a member is decided by.
type roll struct {
	access   etcd.Access
	state    etcd.State
	recorded etcd.Identity
	pods     []corev1.Pod
	outdated []string
	// quota is the one that members are to have, in bytes.
	quota int64
}

// proceeds reports whether members are to be replaced and nothing is against it.
func (o roll) proceeds() bool {
	name, _ := o.state.Next(o.outdated)
	return len(o.outdated) > 0 && o.refusal(name) == nil
}

// refusal returns why a member can't be taken down now, nil when it can: with a single
// one, there is no better time.
func (o roll) refusal(member string) error {
	var accepted []string
	if o.grows(member) {
		accepted = []string{etcd.AlarmNoSpace}
	}
	if err := o.state.Gate(o.recorded, member, accepted...); !errors.Is(err, etcd.ErrSingleMember) {
		return err
	}
	return nil
}

// grows reports whether a member gets a larger quota with its replacement, by which etcd
// may get over its alarm NOSPACE. No other replacement is begun while that is raised.
func (o roll) grows(member string) bool {
	i := slices.IndexFunc(o.state.Members, func(m etcd.Member) bool { return m.Name == member })
	return i >= 0 && slices.Contains(o.outdated, member) && o.state.Members[i].Quota > 0 && o.state.Members[i].Quota < o.quota
}

// mends reports whether the member to be replaced next is not ready anyway.
func (o roll) mends() bool {
	name, _ := o.state.Next(o.outdated)
	i := slices.IndexFunc(o.state.Members, func(m etcd.Member) bool { return m.Name == name })
	return i >= 0 && o.state.Members[i].Err != nil
}

// lingers reports whether the pod of the member to be replaced next should have ended by now.
// On a node that does not answer it ends when that is back, and nothing is being replaced
// until then.
func (o roll) lingers(now time.Time) bool {
	name, _ := o.state.Next(o.outdated)
	return slices.ContainsFunc(o.pods, func(pod corev1.Pod) bool {
		return pod.Name == name && pod.DeletionTimestamp != nil && now.After(pod.DeletionTimestamp.Time)
	})
}

// rollStuck replaces outdated pods in which etcd does not run and will not, as
// where no node fits, the guard refuses or etcd fails at every start: there is nothing to interrupt, and no
// other way for a corrected spec to reach them.
func (s *Stage) rollStuck(ctx context.Context, pods []corev1.Pod, outdated []string) verdict.Verdict {
	for i := range pods {
		pod := &pods[i]
		stuck := pod.Status.Phase == corev1.PodPending || diagnose.GuardRefuses(pod) || diagnose.CrashLooping(pod, operand.ComponentEtcd)
		if s.ReadOnly() || !stuck || pod.DeletionTimestamp != nil || !slices.Contains(outdated, pod.Name) {
			continue
		}
		if err := s.replace(ctx, pod); err != nil {
			return s.rolls(turn.NotReplaced(pod, err)).DegradedIf(s.found.State.Serves() == nil)
		}
		pod.DeletionTimestamp = &metav1.Time{Time: s.Now} // as it is in the host by now
	}
	return done
}

// replace evicts a member's pod; its StatefulSet makes another one. The host
// counts an eviction against the member's PodDisruptionBudget, as it does a drain
// of nodes, and so never lets both take a member at a time. A single member has no
// budget, and a pod in which nothing was started counts for none.
func (s *Stage) replace(ctx context.Context, pod *corev1.Pod) error {
	if claim := s.deletedClaims()[pod.Name]; claim != nil {
		return claimDeleted{claim.Name}
	}
	s.found.Acted = true
	if err := s.Writer().Evict(ctx, pod); err != nil {
		return err
	}
	s.Event(corev1.EventTypeNormal, "MemberReplaced", operatorv1alpha1.ConditionEtcdReady, "pod %s is replaced by one from the latest template: %s", pod.Name, s.found.Rolling)
	return nil
}

// rollMember replaces one outdated pod, if all others serve and have served for a
// while.
func (s *Stage) rollMember(ctx context.Context, roll roll) verdict.Verdict {
	wait := func(format string, args ...any) verdict.Verdict {
		return s.rolls(verdict.Waiting(operatorv1alpha1.ReasonProgressing, format, args...).In(verdict.Soon).DegradedIf(true))
	}
	if s.ReadOnly() {
		return wait("nothing is changed now").In(verdict.Vigil)
	}
	name, leads := roll.state.Next(roll.outdated)
	if err := roll.refusal(name); err != nil {
		return wait("%s is next, but must wait: %s", name, err)
	}
	var next *corev1.Pod
	for i := range roll.pods {
		pod := &roll.pods[i]
		if pod.Name == name {
			next = pod
		} else if s.Now.Sub(readySince(pod)) < settled {
			return wait("%s is next, once %s has been ready for %s", name, pod.Name, settled)
		}
	}
	if next == nil || next.DeletionTimestamp != nil {
		return wait("%s is being replaced", name)
	}
	if servers, err := turn.Servers(ctx, s.Objects); err != nil {
		return verdict.Failed(err)
	} else if servers && !roll.mends() {
		return wait("%s is next, once the servers are replaced", name)
	}
	if v := s.stays(ctx, next); !v.Complete() {
		return s.rolls(v)
	}
	if leads && len(roll.pods) > 1 {
		s.found.Acted = true
		if err := roll.access.MoveLeader(ctx, roll.state); err != nil {
			return wait("the leader %s is next, but can't hand over: %s", name, err)
		}
		return wait("%s is next, and has handed over the leadership", name)
	}
	if err := s.replace(ctx, next); err != nil {
		return s.rolls(turn.NotReplaced(next, err))
	}
	return wait("%s is being replaced", name)
}

// stays is done when the volume of a member can follow it to where the spec wants it. Where it
// can't, the pod that takes its place would never run: a new member does, if there are others.
func (s *Stage) stays(ctx context.Context, pod *corev1.Pod) verdict.Verdict {
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: pod.Namespace, Name: contract.EtcdMemberClaim(pod.Name)}
	if err := s.Live.Get(ctx, key, claim); client.IgnoreNotFound(err) != nil {
		return verdict.Failed(err)
	}
	why, err := placement.Stays(ctx, s.Live, claim, s.Registry.Spec.Etcd.Pods)
	switch {
	case err != nil:
		return verdict.Failed(err)
	case why == "":
		return done
	case len(s.Identity.Record.Members) == 1:
		return verdict.Waiting(operatorv1alpha1.ReasonMembersBlocked, "%s can't be moved: %s, and the only member has no other copy of its data: set spec.etcd.replicas to 3, and back to 1 when %s was replaced; or change the placement back", pod.Name, why, pod.Name).In(verdict.Backstop).DegradedIf(true)
	}
	return verdict.Waiting(operatorv1alpha1.ReasonMembersChanging, "%s is not replaced by a pod of the latest template, but by a new member: %s", pod.Name, why).In(verdict.Soon).DegradedIf(true)
}

// readySince returns when a pod became ready, now when it is not.
func readySince(pod *corev1.Pod) time.Time {
	if condition := diagnose.ReadyCondition(pod); condition != nil {
		return condition.LastTransitionTime.Time
	}
	return time.Now()
}

// underWay reports whether members are being replaced, of which the given number
// does not serve: one comes up, or was evicted and its pod is not made again yet, or one
// was replaced a short while ago and others follow, although etcd may not let the next
// one go at this moment.
func (s *Stage) underWay(silent int, pods []corev1.Pod, outdated []string) bool {
	missing := silent > 0 && len(pods) < len(s.Identity.Members())
	recently := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return s.Now.Sub(pod.CreationTimestamp.Time) < turn.ComingUp })
	return missing || turn.Starting(s.Now, pods) || recently && len(outdated) > 0
}
