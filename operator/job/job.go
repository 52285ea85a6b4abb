// Package job has the Jobs that save, look up and restore a registry's data: what is rendered
// of one is applied, what came of it is read, and one of another task makes room.
package job

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Earlier says what to wait for where the Job of another task is in the way.
const Earlier = "Waiting for an earlier Job to be deleted"

// Apply applies what is rendered of a stage. Stale is true where its Job is of another task
// or spec: a Job can't be changed, so that one is to be deleted.
func Apply(ctx context.Context, o *operand.Objects, stage render.Stage) (stale bool, err error) {
	for _, object := range o.Rendered.Stages[stage] {
		err := o.Apply(ctx, object)
		switch {
		case err == nil:
		case object.GetKind() == "Job" && verdict.Immutable(err):
			return true, nil
		case object.GetKind() == "Job" && apierrors.IsInvalid(err):
			return false, fmt.Errorf("correct spec.jobs or spec.etcd, by which the pods of Jobs are made: %w", err)
		default:
			return false, err
		}
	}
	return false, nil
}

// Read reads the Job of a stage, which is to do a task, and what came of it. Stale is true
// where it is of another task, and is to be deleted.
func Read(ctx context.Context, o *operand.Objects, stage render.Stage, task, component string) (job *batchv1.Job, outcome backup.Outcome, stale bool, v verdict.Verdict) {
	job = &batchv1.Job{}
	if v := o.Applied(ctx, stage, job); !v.Complete() {
		return nil, backup.Outcome{}, false, v
	}
	if job.Annotations[operatorv1alpha1.AnnotationBackup] != task {
		return nil, backup.Outcome{}, true, verdict.Verdict{}
	}
	pods, err := o.Pods(ctx, component)
	if err != nil {
		return nil, backup.Outcome{}, false, verdict.Failed(err)
	}
	outcome = backup.Read(job, pods)
	if outcome == (backup.Outcome{}) {
		outcome.Message = o.Diagnoser().NoPod(ctx, job, pods)
	}
	return job, outcome, false, verdict.Verdict{}
}

// Task returns the ID of the task of the registry's Job with a suffix, as the cache has it; empty
// where there is none.
func Task(ctx context.Context, o *operand.Objects, suffix string) (string, error) {
	job := &batchv1.Job{}
	err := o.Client.Get(ctx, o.Key(suffix), job)
	return job.Annotations[operatorv1alpha1.AnnotationBackup], client.IgnoreNotFound(err)
}

// Delete deletes the registry's Job with a suffix.
func Delete(ctx context.Context, o *operand.Objects, suffix string) error {
	job := operatorv1alpha1.ObjectReference{Group: batchv1.GroupName, Kind: "Job", Namespace: o.Registry.Namespace, Name: o.Name(suffix)}
	_, err := o.Writer().Delete(ctx, job, o.Owner())
	return err
}
