package diagnose

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods says of each pod that is not ready why, in the order given. A pod that is
// pending is explained by the volumes that it waits for and by its latest warning, too.
func (d Diagnoser) Pods(ctx context.Context, pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		pod := &pods[i]
		if Ready(pod) {
			continue
		}
		problem := Pod(pod)
		if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
			for _, why := range append(d.claims(ctx, pod), d.lastWarning(ctx, pod.Namespace, pod.UID)) {
				if why != "" && !strings.Contains(problem, why) {
					problem += ": " + why
				}
			}
		}
		out = append(out, problem)
	}
	return out
}

// claims says which claims of a pod are not bound, and why.
func (d Diagnoser) claims(ctx context.Context, pod *corev1.Pod) []string {
	var out []string
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		err := d.Client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: volume.PersistentVolumeClaim.ClaimName}, claim)
		if err != nil || claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		out = append(out, d.Unbound(ctx, claim))
	}
	return out
}

// Unbound says why a claim is not bound.
func (d Diagnoser) Unbound(ctx context.Context, claim *corev1.PersistentVolumeClaim) string {
	problem := "PersistentVolumeClaim " + claim.Name + " is not bound"
	if why := d.lastWarning(ctx, claim.Namespace, claim.UID); why != "" {
		problem += " (" + why + ")"
	}
	return problem
}

// Replicas says why a Deployment or StatefulSet has fewer pods than it should, as
// where a quota or an admission webhook refuses them. It is never empty; ask it only
// when pods are missing.
func (d Diagnoser) Replicas(ctx context.Context, workload client.Object) string {
	if deployment, is := workload.(*appsv1.Deployment); is {
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
				return condition.Message
			}
		}
	}
	if why := d.lastWarning(ctx, workload.GetNamespace(), workload.GetUID()); why != "" {
		return why
	}
	return "their pods do not exist yet"
}
