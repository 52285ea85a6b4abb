package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/status"
	"github.com/clusterregistry/operator/internal/diagnose"
)

// recent is how old an event may be that is a finding of its own.
const recent = 24 * time.Hour

// happened finds events of the registry that no condition repeats.
func (d *diagnosis) happened(creg *operatorv1alpha1.ClusterRegistry, warnings warnings) {
	for _, event := range warnings[creg.UID] {
		if event.Reason == operatorv1alpha1.ReasonAddressChanged && d.env.Now().Sub(observed(event).Time) <= recent {
			d.add(status.Warning, registryName(creg), "kubectl -n "+creg.Namespace+" describe creg "+creg.Name+"; give clients the kubeconfig again", "%s at %s: %s", event.Reason, observed(event).UTC().Format(time.RFC3339), event.Message)
		}
	}
}

// workloads finds pods that are not ready and claims that they wait for, Jobs that
// failed, and pods that are missing.
func (d *diagnosis) workloads(ctx context.Context, creg *operatorv1alpha1.ClusterRegistry, warnings warnings) {
	found, listed := list[corev1.Pod](ctx, d, pods, creg.Namespace, of(creg))
	d.pods(found, warnings, guide(creg))
	d.claims(ctx, creg, warnings, func(claim string) bool { return !listed || mounted(found, claim) })
	if oom := diagnose.OutOfMemory(slices.DeleteFunc(slices.Clone(found), func(pod corev1.Pod) bool { return !diagnose.Ready(&pod) }), d.env.Now()); oom != "" {
		d.add(status.Warning, registryName(creg), "kubectl -n "+creg.Namespace+" edit creg "+creg.Name, "%s", oom)
	}
	all, _ := list[batchv1.Job](ctx, d, jobs, creg.Namespace, of(creg))
	for i := range all {
		job := &all[i]
		its := slices.DeleteFunc(slices.Clone(found), func(pod corev1.Pod) bool { return pod.Labels[batchv1.JobNameLabel] != job.Name })
		if problem := diagnose.Job(job, its); problem != "" {
			d.add(status.Error, "job "+job.Namespace+"/"+job.Name, "kubectl -n "+job.Namespace+" logs job/"+job.Name, "%s", problem)
		}
	}
	servers, _ := list[appsv1.Deployment](ctx, d, deployments, creg.Namespace, of(creg))
	for _, deployment := range servers {
		why := warnings.last(deployment.UID)
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
				why = condition.Message
			}
		}
		d.missing("deployment", deployment.ObjectMeta, deployment.Spec.Replicas, deployment.Status.Replicas, why)
	}
	members, _ := list[appsv1.StatefulSet](ctx, d, statefulSets, creg.Namespace, of(creg))
	for _, set := range members {
		d.missing("statefulset", set.ObjectMeta, set.Spec.Replicas, set.Status.Replicas, warnings.last(set.UID))
	}
}

// missing finds a workload with fewer pods than it should have.
func (d *diagnosis) missing(kind string, object metav1.ObjectMeta, want *int32, have int32, why string) {
	if want == nil || have >= *want || object.DeletionTimestamp != nil {
		return
	}
	d.add(status.Error, kind+" "+object.Namespace+"/"+object.Name, "kubectl -n "+object.Namespace+" describe "+kind+" "+object.Name, "%d of %d pods exist%s", have, *want, because(why))
}

// pods finds pods that are not ready. A Job's pods are not expected to be. guide is the section
// about etcd members whose guard refuses their data.
func (d *diagnosis) pods(found []corev1.Pod, warnings warnings, guide string) {
	for i := range found {
		pod := &found[i]
		if diagnose.Ready(pod) || pod.Labels[batchv1.JobNameLabel] != "" && pod.Status.Phase != corev1.PodPending {
			continue
		}
		severity, next := status.Warning, "kubectl -n "+pod.Namespace+" describe pod "+pod.Name
		if container := failed(pod); container != "" {
			severity, next = status.Error, fmt.Sprintf("kubectl -n %s logs %s -c %s --previous", pod.Namespace, pod.Name, container)
		} else if unscheduled(pod) {
			severity = status.Error
		}
		if diagnose.GuardRefuses(pod) {
			severity, next = status.Critical, next+`; docs/how-to/replace-an-etcd-member.md, "`+guide+`": delete nothing before`
		}
		problem := diagnose.Pod(pod)
		// Much of what blocks a pod that is pending is in events alone.
		if why := warnings.last(pod.UID); pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil && !strings.Contains(problem, why) {
			problem += because(why)
		}
		d.add(severity, "pod "+pod.Namespace+"/"+pod.Name, next, "%s", problem)
	}
}

// guide returns the section about a member whose data its guard refuses: another one when etcd
// has lost its quorum, since nothing can be replaced then.
func guide(creg *operatorv1alpha1.ClusterRegistry) string {
	if creg.Status.Recovery != nil {
		return "Lost quorum"
	}
	return "A member has lost its data"
}

// failed returns the first container that has failed, "" when there is none.
func failed(pod *corev1.Pod) string {
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if diagnose.Failure(container) != nil {
			return container.Name
		}
	}
	return ""
}

// unscheduled reports whether no node fits, or an image or a setting keeps a container
// from being started.
func unscheduled(pod *corev1.Pod) bool {
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if diagnose.Container(container) != "" {
			return true
		}
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}

// mounted reports whether a pod has a claim among its volumes.
func mounted(pods []corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
			return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim
		})
	})
}

// claims finds claims without a volume. Of many StorageClasses a claim gets one only
// when a pod is to use it: until then it lacks nothing.
func (d *diagnosis) claims(ctx context.Context, creg *operatorv1alpha1.ClusterRegistry, warnings warnings, used func(claim string) bool) {
	all, _ := list[corev1.PersistentVolumeClaim](ctx, d, persistentClaims, creg.Namespace, of(creg))
	for _, claim := range all {
		object, next := "persistentvolumeclaim "+claim.Namespace+"/"+claim.Name, "kubectl -n "+claim.Namespace+" describe pvc "+claim.Name
		switch {
		case claim.Status.Phase == corev1.ClaimLost:
			d.add(status.Critical, object, next, "its volume is gone, and the data in it; delete nothing before docs/how-to/replace-an-etcd-member.md is read")
		case claim.DeletionTimestamp != nil:
			d.add(status.Warning, object, next, "it is being deleted, as soon as no pod uses it")
		case claim.Status.Phase != corev1.ClaimBound && (used(claim.Name) || warnings.last(claim.UID) != ""):
			class := "the default StorageClass"
			if claim.Spec.StorageClassName != nil {
				class = "StorageClass " + *claim.Spec.StorageClassName
			}
			d.add(status.Error, object, next+"; kubectl get storageclasses", "it is not bound to a volume (%s)%s", class, because(warnings.last(claim.UID)))
		}
	}
}
