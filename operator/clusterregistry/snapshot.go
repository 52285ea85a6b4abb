package clusterregistry

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
	"github.com/clusterregistry/operator/operator/diagnose"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

const (
	// componentSnapshot has the pod that takes a snapshot.
	componentSnapshot = "snapshot"
	// saveContainer is the container that says what it has saved.
	saveContainer = "save"
	// snapshotRetry is how long a failed Job stays, to be looked at.
	snapshotRetry = 5 * time.Minute
	// snapshotFresh is how old a snapshot may be when members or servers are first
	// touched.
	snapshotFresh = 15 * time.Minute
)

// snapshot is complete when etcd was saved, and restored from what was saved.
func (r *Reconciler) snapshot(ctx context.Context, s *scope) verdict.Verdict {
	name := s.upgrade.Snapshot
	if err := r.writer(s).Err(); err != nil {
		return failed(err)
	}
	for _, object := range s.rendered.Stages[render.StageSnapshot] {
		if v := r.snapshotPart(ctx, s, object); !v.Complete() {
			return v
		}
	}
	job := &batchv1.Job{}
	if v := r.applied(ctx, s, render.StageSnapshot, job); !v.Complete() {
		return s.waits("%s", v.Message)
	}
	if job.Annotations[operatorv1alpha1.AnnotationSnapshot] != name {
		return r.snapshotAgain(ctx, s, "the Job of an earlier snapshot is removed")
	}
	pods, err := r.pods(ctx, s, componentSnapshot)
	if err != nil {
		return failed(err)
	}
	for _, condition := range job.Status.Conditions {
		switch {
		case condition.Status != corev1.ConditionTrue:
		case condition.Type == batchv1.JobComplete && s.now.Sub(condition.LastTransitionTime.Time) > snapshotFresh:
			// Nobody looked for that long, and much can have been written since.
			s.enter(operatorv1alpha1.PhasePreflight)
			return s.waits("begins again: the snapshot %s was complete at %s, and it is to be fresh", name, condition.LastTransitionTime.UTC().Format(time.RFC3339)).In(atOnce)
		case condition.Type == batchv1.JobComplete:
			return r.snapshotTaken(ctx, s, pods)
		case condition.Type == batchv1.JobFailed:
			if s.now.Sub(condition.LastTransitionTime.Time) > snapshotRetry {
				return r.snapshotAgain(ctx, s, "the snapshot is tried again")
			}
			return verdict.Waiting(operatorv1alpha1.ReasonSnapshotFailed, "nothing was changed, since etcd could not be saved before: %s; it is tried again every %s, or at once when the Job is deleted", diagnose.Job(job, pods), snapshotRetry)
		}
	}
	return s.waits("snapshot %s %s", name, snapshotStep(pods))
}

// snapshotPart applies the claim or the Job of a snapshot.
func (r *Reconciler) snapshotPart(ctx context.Context, s *scope, object *unstructured.Unstructured) verdict.Verdict {
	err := r.apply(ctx, s, object)
	switch {
	case err == nil:
		return done
	case object.GetKind() == "Job" && apierrors.IsInvalid(err):
		// A Job can't be changed, and this one is of another upgrade or spec.
		return r.snapshotAgain(ctx, s, "the Job of an earlier snapshot is removed")
	case object.GetKind() == "PersistentVolumeClaim" && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)):
		// As where a ResourceQuota has no room for it.
		return verdict.Waiting(operatorv1alpha1.ReasonSnapshotFailed, "nothing was changed, since there is no room to save etcd: the host cluster refuses PersistentVolumeClaim %s (%s)", object.GetName(), err)
	}
	return failed(err)
}

// snapshotStep says what the Job does, and what holds it up.
func snapshotStep(pods []corev1.Pod) string {
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodPending || pods[i].Status.Phase == corev1.PodRunning {
			for _, status := range pods[i].Status.InitContainerStatuses {
				switch {
				case status.State.Running == nil:
				case status.Name == saveContainer:
					return "is being saved"
				default:
					return "is being restored to a scratch volume, which proves it"
				}
			}
			return "is under way: " + diagnose.Pod(&pods[i])
		}
	}
	return "is under way"
}

// snapshotTaken records what was saved.
func (r *Reconciler) snapshotTaken(ctx context.Context, s *scope, pods []corev1.Pod) verdict.Verdict {
	for _, pod := range pods {
		for _, status := range pod.Status.InitContainerStatuses {
			if ended := status.State.Terminated; status.Name != saveContainer || ended == nil || ended.ExitCode != 0 {
				continue
			}
			var saved contract.Snapshot
			if err := json.Unmarshal([]byte(status.State.Terminated.Message), &saved); err != nil || saved.Name != s.upgrade.Snapshot || saved.Revision == 0 {
				continue
			}
			last := &s.registry.Status.History[0]
			last.Snapshot, last.SnapshotRevision = saved.Name, saved.Revision
			return done
		}
	}
	return r.snapshotAgain(ctx, s, "no pod tells of the snapshot any more, and it is taken again")
}

// snapshotAgain removes the Job, so that another one takes its place.
func (r *Reconciler) snapshotAgain(ctx context.Context, s *scope, why string) verdict.Verdict {
	job := operatorv1alpha1.ObjectReference{Group: batchv1.GroupName, Kind: "Job", Namespace: s.registry.Namespace, Name: s.registry.Name + contract.SnapshotSuffix}
	if _, err := r.writer(s).Delete(ctx, job, s.owner()); err != nil {
		return failed(err)
	}
	return s.waits("%s", why)
}
