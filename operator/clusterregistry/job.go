package clusterregistry

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// earlierJob is what is waited for where the Job of another task is in the way.
const earlierJob = "Waiting for an earlier Job to be deleted"

// applyJob applies what is rendered of a stage. Stale is true where its Job is of another task
// or spec: a Job can't be changed, so that one is to be deleted.
func (s *scope) applyJob(ctx context.Context, stage render.Stage) (stale bool, err error) {
	for _, object := range s.Rendered.Stages[stage] {
		err := s.Apply(ctx, object)
		if object.GetKind() == "Job" && apierrors.IsInvalid(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// readJob reads the Job of a stage, which is to do a task, and what came of it. Stale is true
// where it is of another task, and is to be deleted.
func (s *scope) readJob(ctx context.Context, stage render.Stage, task, component string) (job *batchv1.Job, outcome backup.Outcome, stale bool, v verdict.Verdict) {
	job = &batchv1.Job{}
	if v := s.Applied(ctx, stage, job); !v.Complete() {
		return nil, backup.Outcome{}, false, v
	}
	if job.Annotations[operatorv1alpha1.AnnotationBackup] != task {
		return nil, backup.Outcome{}, true, done
	}
	pods, err := s.Pods(ctx, component)
	if err != nil {
		return nil, backup.Outcome{}, false, verdict.Failed(err)
	}
	outcome = backup.Read(job, pods)
	if outcome == (backup.Outcome{}) {
		outcome.Message = s.Diagnoser().NoPod(ctx, job, pods)
	}
	return job, outcome, false, done
}

// deleteJob deletes the registry's Job with a suffix.
func (s *scope) deleteJob(ctx context.Context, suffix string) error {
	job := operatorv1alpha1.ObjectReference{Group: batchv1.GroupName, Kind: "Job", Namespace: s.Registry.Namespace, Name: s.Name(suffix)}
	_, err := s.Writer().Delete(ctx, job, s.Owner())
	return err
}
