package diagnose

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// JobFailed reports whether a condition says that a Job has failed: also one whose time is over,
// and that waits for pods to end, since those of a lost node don't.
func JobFailed(condition batchv1.JobCondition) bool {
	return condition.Status == corev1.ConditionTrue &&
		(condition.Type == batchv1.JobFailed || condition.Type == batchv1.JobFailureTarget && condition.Reason == batchv1.JobReasonDeadlineExceeded)
}

// NoPod says why a Job that is under way has no pod, as where a quota or an admission webhook
// refuses it; empty when it has one, among others, or no one says why.
func (d Diagnoser) NoPod(ctx context.Context, job *batchv1.Job, pods []corev1.Pod) string {
	for _, pod := range pods {
		if pod.Labels[batchv1.ControllerUidLabel] == string(job.UID) {
			return ""
		}
	}
	if why := d.lastWarning(ctx, job.Namespace, job.UID); why != "" {
		return fmt.Sprintf("Job %s has no pod: %s", job.Name, why)
	}
	return ""
}

// Job says why a Job failed: in its controller's words, and in those of the first of
// its pods in which a container did. It is empty for a Job that has not failed.
func Job(job *batchv1.Job, pods []corev1.Pod) string {
	for _, condition := range job.Status.Conditions {
		if !JobFailed(condition) {
			continue
		}
		problem := fmt.Sprintf("Job %s failed (%s)", job.Name, condition.Message)
		for i := range pods {
			if why := containers(&pods[i]); why != "" {
				return problem + ": " + why
			}
		}
		return problem
	}
	return ""
}
