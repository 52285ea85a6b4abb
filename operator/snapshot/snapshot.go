// Package snapshot takes a named snapshot of a registry's own etcd, outside of any
// operation: a Job saves etcd to a claim and verifies what it saved by restoring it to a
// scratch volume. What a snapshot is for, and how fresh it has to be, is the caller's to
// know.
package snapshot

import (
	"context"
	"encoding/json"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/verdict"
)

const (
	// saveContainer is the container that says what it has saved.
	saveContainer = "save"
	// retry is how long a failed Job stays, for inspection.
	retry = 5 * time.Minute
)

// Request is the desired snapshot.
type Request struct {
	// Name is the snapshot's. A Job that takes one with another name is replaced.
	Name string
	// Objects are what a snapshot is taken with, in their order: the claim, the Job that
	// bears the snapshot's name, and what these need.
	Objects []*unstructured.Unstructured
	Now     time.Time
}

// Saved is what a Job has saved. It is empty until the Job is complete.
type Saved struct {
	Name string
	// Revision is etcd's, zero when no pod reports it.
	Revision int64
	// CompletionTime is when the Job was complete.
	CompletionTime time.Time
}

// Host is what snapshots need of the host cluster, for one registry. Its changes fail
// when nothing may be changed.
type Host interface {
	// Apply applies an object as one of the registry's own.
	Apply(ctx context.Context, object *unstructured.Unstructured) error
	// Job returns the Job as it is after it was applied. The verdict is not Done as long
	// as that is not known.
	Job(ctx context.Context) (*batchv1.Job, verdict.Verdict)
	// Pods returns the Job's pods.
	Pods(ctx context.Context) ([]corev1.Pod, error)
	// NoPod says why the Job, which is under way, has no pod among some; empty when it has.
	NoPod(ctx context.Context, job *batchv1.Job, pods []corev1.Pod) string
	// DeleteJob deletes the Job. It succeeds when there is none.
	DeleteJob(ctx context.Context) error
}

// Take takes a snapshot, or continues with it. Its verdict is Done when etcd was saved,
// and restored from what was saved. It has the reason Progressing while the snapshot is
// under way, SnapshotFailed when it can't be taken, and else that of an error.
func Take(ctx context.Context, host Host, request Request) (Saved, verdict.Verdict) {
	for _, object := range request.Objects {
		if v := applyPart(ctx, host, object); !v.Complete() {
			return Saved{}, v
		}
	}
	job, v := host.Job(ctx)
	if !v.Complete() {
		return Saved{}, underWay("%s", v.Message)
	}
	if job.Annotations[operatorv1alpha1.AnnotationSnapshot] != request.Name {
		return Saved{}, again(ctx, host, "the Job of an earlier snapshot is removed")
	}
	pods, err := host.Pods(ctx)
	if err != nil {
		return Saved{}, verdict.Failed(err)
	}
	for _, condition := range job.Status.Conditions {
		switch {
		case condition.Status != corev1.ConditionTrue:
		case condition.Type == batchv1.JobComplete:
			saved := Saved{Name: request.Name, Revision: revision(pods, request.Name), CompletionTime: condition.LastTransitionTime.Time}
			if saved.Revision == 0 {
				return saved, again(ctx, host, "no pod reports the snapshot any more, and it is taken again")
			}
			return saved, verdict.Verdict{}
		case condition.Type == batchv1.JobFailed:
			if request.Now.Sub(condition.LastTransitionTime.Time) > retry {
				return Saved{}, again(ctx, host, "the snapshot is retried")
			}
			return Saved{}, verdict.Waiting(operatorv1alpha1.ReasonSnapshotFailed, "nothing was changed, since the snapshot of etcd failed: %s; it is retried every %s, or at once when the Job is deleted", diagnose.Job(job, pods), retry)
		}
	}
	if why := host.NoPod(ctx, job, pods); why != "" {
		return Saved{}, underWay("snapshot %s is in progress: %s", request.Name, why)
	}
	return Saved{}, underWay("snapshot %s %s", request.Name, step(pods))
}

// underWay returns the verdict of a snapshot that will come without a person.
func underWay(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonProgressing, format, args...)
}

// applyPart applies the claim or the Job of a snapshot.
func applyPart(ctx context.Context, host Host, object *unstructured.Unstructured) verdict.Verdict {
	err := host.Apply(ctx, object)
	switch {
	case err == nil:
		return verdict.Verdict{}
	case object.GetKind() == "Job" && verdict.Immutable(err):
		// A Job can't be changed, and this one is of another snapshot or spec.
		return again(ctx, host, "the Job of an earlier snapshot is removed")
	case object.GetKind() == "Job" && apierrors.IsInvalid(err):
		return verdict.Waiting(operatorv1alpha1.ReasonSnapshotFailed, "nothing was changed, since the host cluster refuses the Job that takes a snapshot of etcd: correct spec.jobs or spec.etcd, by which its pods are made (%s)", err)
	case object.GetKind() == "PersistentVolumeClaim" && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)):
		// As where a ResourceQuota has no room for it.
		return verdict.Waiting(operatorv1alpha1.ReasonSnapshotFailed, "nothing was changed, since there is no space for a snapshot of etcd: the host cluster refuses PersistentVolumeClaim %s (%s)", object.GetName(), err)
	}
	return verdict.Failed(err)
}

// step says what the Job does, and what holds it up.
func step(pods []corev1.Pod) string {
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodPending || pods[i].Status.Phase == corev1.PodRunning {
			for _, status := range pods[i].Status.InitContainerStatuses {
				switch {
				case status.State.Running == nil:
				case status.Name == saveContainer:
					return "is being saved"
				default:
					return "is being restored to a scratch volume to verify it"
				}
			}
			return "is in progress: " + diagnose.Pod(&pods[i])
		}
	}
	return "is in progress"
}

// revision returns the revision at which a snapshot was taken, as the pod that took it
// reports; zero when none does.
func revision(pods []corev1.Pod, name string) int64 {
	for _, pod := range pods {
		for _, status := range pod.Status.InitContainerStatuses {
			if ended := status.State.Terminated; status.Name != saveContainer || ended == nil || ended.ExitCode != 0 {
				continue
			}
			var saved contract.Snapshot
			if err := json.Unmarshal([]byte(status.State.Terminated.Message), &saved); err == nil && saved.Name == name && saved.Revision != 0 {
				return saved.Revision
			}
		}
	}
	return 0
}

// again removes the Job, so that another one takes its place.
func again(ctx context.Context, host Host, why string) verdict.Verdict {
	if err := host.DeleteJob(ctx); err != nil {
		return verdict.Failed(err)
	}
	return underWay("%s", why)
}
