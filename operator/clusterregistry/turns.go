package clusterregistry

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/diagnose"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Members and servers are never replaced at the same time: whatever is
// under way continues, and the other waits. Where both have to change, members come
// first, since their stage does. Members that can't be replaced at the moment, as
// while another one is lost, block no server: the change may be what servers need. A
// change that is to fix servers of which none is ready does not wait, and neither
// does one of servers that are being replaced: members wait for these.

// comingUp is for how long a pod that was just replaced is waited for. One that needs
// longer has another problem.
const comingUp = 5 * time.Minute

// comesUp reports whether a pod that was just made is not ready yet.
func comesUp(now time.Time, pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return !diagnose.Ready(&pod) && now.Sub(pod.CreationTimestamp.Time) < comingUp
	})
}

// underWay reports whether members are being replaced, of which the given number
// does not serve: one comes up, or was evicted and its pod is not made again yet, or one
// was replaced a short while ago and others follow, although etcd may not let the next
// one go at this moment.
func underWay(s *scope, silent int, pods []corev1.Pod, outdated []string) bool {
	missing := silent > 0 && len(pods) < len(s.members)
	recently := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return s.now.Sub(pod.CreationTimestamp.Time) < comingUp })
	return missing || comesUp(s.now, pods) || recently && len(outdated) > 0
}

// replacing reports whether a server began to terminate a short while ago and the one in
// its place is not ready yet, or not even made.
func replacing(now time.Time, deployment *appsv1.Deployment, pods []corev1.Pod) bool {
	staying, recently := int32(0), false
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			staying++
		} else if now.Sub(pod.DeletionTimestamp.Time) < comingUp {
			recently = true
		}
	}
	return comesUp(now, pods) || recently && deployment.Spec.Replicas != nil && staying < *deployment.Spec.Replicas
}

// serversRolling reports whether servers are being replaced.
func (r *Reconciler) serversRolling(ctx context.Context, s *scope) (bool, error) {
	deployment, err := r.deployment(ctx, s)
	if err != nil || deployment == nil || r.rollingOut(s, deployment) {
		return deployment != nil, err
	}
	pods, err := r.pods(ctx, s, componentServer)
	return replacing(s.now, deployment, running(pods)), err
}

// rollingOut reports whether a Deployment has not replaced all pods yet, or was
// changed after it was read.
func (r *Reconciler) rollingOut(s *scope, deployment *appsv1.Deployment) bool {
	status := deployment.Status
	i := serversAt(s.rendered.Stages[render.StageServer])
	return i >= 0 && r.Applier.Behind(s.rendered.Stages[render.StageServer][i], deployment) ||
		status.ObservedGeneration < deployment.Generation || deployment.Spec.Replicas != nil && status.UpdatedReplicas < *deployment.Spec.Replicas || status.Replicas > status.UpdatedReplicas
}

// deployment returns the Deployment of the servers, nil when there is none.
func (r *Reconciler) deployment(ctx context.Context, s *scope) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	err := r.Client.Get(ctx, s.key(contract.ServerSuffix), deployment)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return deployment, err
}

// serversAt returns where the Deployment of the servers is among rendered objects.
func serversAt(objects []*unstructured.Unstructured) int {
	return slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
}

// serversTurn returns what to apply of the servers' stage. It is degraded when their
// Deployment has to wait until etcd's members are replaced.
func (r *Reconciler) serversTurn(ctx context.Context, s *scope) ([]*unstructured.Unstructured, verdict.Verdict) {
	all := s.rendered.Stages[render.StageServer]
	if !s.membersRolling || s.readOnly {
		return all, done
	}
	deployment, err := r.deployment(ctx, s)
	if err != nil {
		return nil, verdict.Failed(err)
	}
	if deployment == nil || deployment.Status.ReadyReplicas == 0 || r.rollingOut(s, deployment) {
		return all, done
	}
	i := serversAt(all)
	s.own(all[i])
	if !r.Applier.Pending(all[i]) {
		return all, done
	}
	rest := slices.Delete(slices.Clone(all), i, i+1)
	return rest, verdict.Waiting(operatorv1alpha1.ReasonProgressing, "Deployment %s is updated once the etcd members are replaced", deployment.Name).In(verdict.Soon).DegradedIf(true)
}
