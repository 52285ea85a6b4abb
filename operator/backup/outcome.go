package backup

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/diagnose"
)

// Container is the container of a Job that does its step, and says in its termination message
// what it did.
const Container = "backup"

// State is how far a Job is.
type State int

// The states of a Job.
const (
	// Running is not over.
	Running State = iota
	// Succeeded is done, and has reported.
	Succeeded
	// Lost is to be done again, which changes nothing: it is done, but its report is gone with
	// its pod, or it could not reach the store, and it is time for the next attempt.
	Lost
	// Failed may succeed another time.
	Failed
	// Unreachable could not reach the store.
	Unreachable
	// Damaged has found that the backup can't be used.
	Damaged
)

// Outcome is what came of a Job.
type Outcome struct {
	State State
	// Message says what the Job waits for or why it failed.
	Message string
	report  string
	// ended is when it was Unreachable.
	ended time.Time
}

// Read reads what came of a Job from it and its pods. Others are among these: the pods of an
// earlier Job of the name may not be gone yet.
func Read(job *batchv1.Job, all []corev1.Pod) Outcome {
	var pods []corev1.Pod
	for _, pod := range all {
		if pod.Labels[batchv1.ControllerUidLabel] == string(job.UID) {
			pods = append(pods, pod)
		}
	}
	for _, condition := range job.Status.Conditions {
		switch {
		case condition.Status != corev1.ConditionTrue:
		case condition.Type == batchv1.JobComplete:
			for _, pod := range pods {
				if ended := terminated(pod); ended != nil && ended.ExitCode == 0 && json.Valid([]byte(ended.Message)) {
					return Outcome{State: Succeeded, report: ended.Message}
				}
			}
			return Outcome{State: Lost, Message: "no pod reports what was done any more, and it is done again"}
		case diagnose.JobFailed(condition):
			return failed(job, condition, pods)
		}
	}
	for i := range pods {
		phase, ended := pods[i].Status.Phase, terminated(pods[i])
		if phase == corev1.PodPending || phase == corev1.PodRunning && ended != nil && ended.ExitCode == 0 {
			return Outcome{Message: diagnose.Pod(&pods[i])}
		}
	}
	return Outcome{}
}

// failed returns why a Job failed, as its condition says, in the words of the newest of its pods
// that has any.
func failed(job *batchv1.Job, condition batchv1.JobCondition, pods []corev1.Pod) Outcome {
	newestFirst := slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for _, pod := range newestFirst {
		ended := terminated(pod)
		if ended == nil || ended.ExitCode == 0 {
			continue
		}
		message := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(ended.Message), "error: "))
		switch {
		case ended.ExitCode == contract.BackupDamaged:
			return Outcome{State: Damaged, Message: message}
		case ended.ExitCode == contract.StoreUnreachable && message != "":
			return Outcome{State: Unreachable, Message: message, ended: condition.LastTransitionTime.Time}
		case message != "" && ended.Reason != "OOMKilled":
			return Outcome{State: Failed, Message: message}
		}
	}
	return Outcome{State: Failed, Message: diagnose.Job(job, newestFirst)}
}

// terminated returns how the container of a pod ended, nil when it did not.
func terminated(pod corev1.Pod) *corev1.ContainerStateTerminated {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == Container {
			return status.State.Terminated
		}
	}
	return nil
}

// Report reads what the Job of a backup has reported of it. A report of another backup, or
// of none, is no report.
func (o Outcome) Report(t Task) (contract.BackupReport, bool) {
	var report contract.BackupReport
	if json.Unmarshal([]byte(o.report), &report) != nil || report.Name == "" || report.Revision < 1 {
		return contract.BackupReport{}, false
	}
	return report, report.Name == t.Name || report.Unchanged && t.SkipUnchanged
}

// Shown reads what a Job has reported of a backup that it was to look up. What has no
// checksum, time or revision is no report of one.
func (o Outcome) Shown() (contract.BackupReport, bool) {
	var report contract.BackupReport
	if json.Unmarshal([]byte(o.report), &report) != nil {
		return contract.BackupReport{}, false
	}
	return report, report.Name != "" && report.SHA256 != "" && report.Revision > 0 && report.Bytes > 0 && !report.Time.IsZero()
}

// Removed reads which backups a Job that has ended has removed, and why not all that were to be.
func (o Outcome) Removed() (names []string, failure string) {
	if o.State != Succeeded {
		return nil, cmp.Or(o.Message, "the Job failed")
	}
	var removed contract.BackupsRemoved
	_ = json.Unmarshal([]byte(o.report), &removed) // it is valid, and says nothing else
	return removed.Names, removed.Failure
}
