// Package turn keeps etcd members and servers from being replaced at the same time:
// what is under way continues, and the other waits. Where both have to change, members
// come first, since their stage does. Members that can't be replaced at the moment, as
// while another one is lost, block no server: the change may be what servers need. A
// change that is to fix servers of which none is ready does not wait, and neither does one
// of servers that are being replaced: members wait for these.
package turn

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// ComingUp is for how long a pod that was just replaced is waited for. One that needs
// longer has another problem.
const ComingUp = 5 * time.Minute

// Starting reports whether a pod that was just made is not ready yet.
func Starting(now time.Time, pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return !diagnose.Ready(&pod) && now.Sub(pod.CreationTimestamp.Time) < ComingUp
	})
}

// Replacing reports whether a server was told to end a short while ago and the one in its
// place is not ready yet, or not even made.
func Replacing(now time.Time, deployment *appsv1.Deployment, pods []corev1.Pod) bool {
	staying, recently := int32(0), false
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			staying++
		} else if now.Sub(pod.DeletionTimestamp.Time) < ComingUp {
			recently = true
		}
	}
	return Starting(now, pods) || recently && deployment.Spec.Replicas != nil && staying < *deployment.Spec.Replicas
}

// RollingOut reports whether the servers' Deployment has not replaced all pods yet, or was
// changed after it was read.
func RollingOut(o *operand.Objects, deployment *appsv1.Deployment) bool {
	status, rendered := deployment.Status, o.Rendered.Stages[render.StageServer]
	i := DeploymentAt(rendered)
	return i >= 0 && o.Applier.Behind(rendered[i], deployment) ||
		status.ObservedGeneration < deployment.Generation || deployment.Spec.Replicas != nil && status.UpdatedReplicas < *deployment.Spec.Replicas || status.Replicas > status.UpdatedReplicas
}

// Servers reports whether servers are being replaced.
func Servers(ctx context.Context, o *operand.Objects) (bool, error) {
	deployment, err := o.Deployment(ctx)
	if err != nil || deployment == nil || RollingOut(o, deployment) {
		return deployment != nil, err
	}
	pods, err := o.Pods(ctx, operand.ComponentServer)
	return Replacing(o.Now, deployment, operand.Running(pods)), err
}

// DeploymentAt returns where the Deployment of the servers is among rendered objects, -1
// when it is not among them.
func DeploymentAt(objects []*unstructured.Unstructured) int {
	return slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
}

// NotReplaced is the verdict on a pod that is next and was not replaced. That the host
// cluster refuses an eviction at the moment is expected while nodes are drained.
func NotReplaced(pod *corev1.Pod, err error) verdict.Verdict {
	if apierrors.IsTooManyRequests(err) || apierrors.IsConflict(err) {
		return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "%s is next, but its eviction is refused for now: %s", pod.Name, err).In(verdict.Soon).DegradedIf(true)
	}
	return verdict.Failed(fmt.Errorf("evict pod %s: %w", pod.Name, err))
}

// Announce returns the verdict on a replacement with what is being replaced before what
// that waits for. An unexpected error stays as it is.
func Announce(rolling string, v verdict.Verdict) verdict.Verdict {
	if rolling != "" && v.Err == nil {
		v.Message = rolling + "; " + v.Message
	}
	return v
}
