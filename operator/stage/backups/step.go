package backups

import (
	"cmp"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/job"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/schedule"
	"github.com/clusterregistry/operator/operator/store"
	"github.com/clusterregistry/operator/operator/verdict"
)

// stepBackups does what is due. The verdict is one of an error, or says when to come back.
func (s *Stage) stepBackups(ctx context.Context, times schedule.Schedule) verdict.Verdict {
	status := s.Registry.Status.Backup
	lineage, err := s.Identity.Lineage(ctx)
	if err != nil {
		return again(err)
	}
	fresh := status.Lineage != lineage
	if fresh {
		// What is known of others says nothing about this data.
		*status = operatorv1alpha1.BackupStatus{Lineage: lineage}
	}
	out := verdict.Verdict{}
	for _, step := range []func(context.Context) error{
		s.holdContent,
		s.runBackupTask,
		s.explainPending,
		func(ctx context.Context) error { return s.schedule(ctx, times) },
		s.dropBackups,
	} {
		if err := step(ctx); err != nil {
			v := again(err)
			if v.Err != nil && !errors.Is(err, errRequestNotStored) {
				return v // that one has no backup wait
			}
			if out.Err == nil {
				out = v
			}
		}
	}
	backup.Summarize(status, s.Found.All)
	if fresh && out.After == 0 {
		out.After = verdict.AtOnce
	}
	return out
}

// again returns the verdict of an error. That someone else was faster is none, nor that the
// namespace is terminating, which the next reconcile knows.
func again(err error) verdict.Verdict {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return verdict.Verdict{After: verdict.AtOnce}
	}
	return verdict.Failed(err)
}

// judgeBackups returns the verdict on the backups, from what came of the step.
func (s *Stage) judgeBackups(times schedule.Schedule, invalid error, step verdict.Verdict) verdict.Verdict {
	spec, status := s.Registry.Spec.Backup, s.Registry.Status.Backup
	status.NextRun = nil
	if next := backup.Next(times, *status, s.Now); !next.IsZero() && !spec.Suspend && s.Found.blocked.Complete() && s.Deleting() == "" {
		at := metav1.NewTime(next.UTC())
		status.NextRun = &at
	}
	if step.Err != nil || !step.Complete() {
		return step
	}
	v := verdict.Verdict{}
	switch {
	case invalid != nil:
		v = verdict.Waiting(operatorv1alpha1.ReasonScheduleInvalid, "spec.backup.%s", invalid).In(verdict.Resync)
	case !s.Found.blocked.Complete():
		// The Secret that is awaited is not watched.
		v = s.Found.blocked.In(cmp.Or(s.Found.blocked.After, verdict.Backstop))
	default:
		finding := backup.Judge(*spec, times, *status, s.Found.All, s.Now)
		v = verdict.Verdict{Reason: finding.Reason, Message: finding.Message}
		if !finding.Good {
			v.State = verdict.Degraded
		}
	}
	v.After = cmp.Or(step.After, s.Found.last.After, v.After, verdict.Vigil)
	if s.Found.task != nil {
		v.After = min(v.After, verdict.Backstop)
	}
	if away := status.StoreUnreachable; away != nil && away.NextAttempt != nil && !s.ReadOnly() {
		v.After = min(v.After, max(verdict.AtOnce, away.NextAttempt.Sub(s.Now)))
	}
	if failure := status.PruneFailure; failure != nil && s.Now.Before(failure.NextAttempt.Time) {
		v.After = min(v.After, failure.NextAttempt.Sub(s.Now))
	}
	if status.NextRun != nil {
		v.After = min(v.After, max(verdict.AtOnce, status.NextRun.Sub(s.Now)))
	}
	return v
}

// backupsBlocked says why no backup can be begun, done when one can.
func (s *Stage) backupsBlocked(ctx context.Context) verdict.Verdict {
	if s.Registry.Spec.Etcd.External != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonBackupUnsupported, "the operator takes no backups of an external etcd: save it with the tools that it is run with, such as etcdctl snapshot save, and remove spec.backup").In(verdict.Resync)
	}
	claim, v := store.Needs(ctx, s.Objects, s.Registry.Spec.Backup.Store, "spec.backup.store", "no backup can be taken")
	if v.Complete() && claim != nil && claim.Labels[operatorv1alpha1.LabelManagedBy] == operatorv1alpha1.ManagedBy {
		// What the operator makes for a registry, it deletes with it.
		return verdict.Waiting(operatorv1alpha1.ReasonStoreSecretMissing, "no backup can be taken to PersistentVolumeClaim %s, which spec.backup.store names: it is a volume of the registry itself: name another one", claim.Name)
	}
	return v
}

// backupJob has the Job of the present task, and reads what came of it.
func (s *Stage) backupJob(ctx context.Context) (backup.Outcome, error) {
	stale, err := job.Apply(ctx, s.Objects, render.StageBackup)
	if err != nil || !stale && s.Found.task == nil {
		return backup.Outcome{}, err
	}
	var outcome backup.Outcome
	if !stale {
		var v verdict.Verdict
		if _, outcome, stale, v = job.Read(ctx, s.Objects, render.StageBackup, s.Found.task.ID(), operand.ComponentBackup); !v.Complete() {
			return backup.Outcome{Message: v.Message}, v.Err
		}
	}
	if stale {
		return backup.Outcome{Message: job.Earlier}, s.deleteBackupJob(ctx)
	}
	return outcome, nil
}
