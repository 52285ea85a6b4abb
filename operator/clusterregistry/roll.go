package clusterregistry

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
)

// settled is how long members must have served before the next one is replaced:
// as long as etcd itself waits before it calls a connection healthy.
const settled = 5 * time.Second

// rollMembers replaces pods of an older template, one at a time and only while
// all others serve.
func (r *Reconciler) rollMembers(ctx context.Context, s *scope, access etcd.Access, state etcd.State, id *identity, set *appsv1.StatefulSet, pods []corev1.Pod) *hold {
	if set.Status.ObservedGeneration < set.Generation {
		return waitFor(operatorv1alpha1.ReasonProgressing, "StatefulSet %s has changed, and its controller has not looked at it yet", set.Name).in(soon).impairedIf(true)
	}
	var outdated []string
	byName := map[string]*corev1.Pod{}
	for i := range pods {
		pod := &pods[i]
		byName[pod.Name] = pod
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision {
			outdated = append(outdated, pod.Name)
		}
	}
	if len(outdated) == 0 {
		return nil
	}
	s.rolling = fmt.Sprintf("etcd: %d of %d members are as wanted", len(pods)-len(outdated), len(pods))
	wait := func(format string, args ...any) *hold {
		return waitFor(operatorv1alpha1.ReasonProgressing, s.rolling+"; "+format, args...).in(soon).impairedIf(true)
	}
	if s.frozen {
		return wait("nothing is changed now")
	}
	name, leads := state.Next(outdated)
	if err := state.Gate(id.Identity, name); err != nil && !errors.Is(err, etcd.ErrSingleMember) {
		return wait("%s is next, and has to wait: %s", name, err)
	}
	for i := range pods {
		if since := readySince(&pods[i]); s.now.Sub(since) < settled {
			return wait("%s is next, when %s has served for %s", name, pods[i].Name, settled)
		}
	}
	if leads && len(pods) > 1 {
		if err := access.MoveLeader(ctx, state); err != nil {
			return wait("the leader %s is next, and can't hand over: %s", name, err)
		}
		return wait("%s is next, and has handed the leadership over", name)
	}
	pod := byName[name]
	r.event(s, corev1.EventTypeNormal, "MemberReplaced", "pod %s of etcd is replaced by one with the wanted template (%s)", name, s.rolling)
	if err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); client.IgnoreNotFound(err) != nil {
		return failed(err)
	}
	return wait("%s is being replaced", name)
}

// readySince returns when a pod became ready, now when it is not.
func readySince(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Now()
}
