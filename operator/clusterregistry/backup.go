package clusterregistry

import (
	"cmp"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/job"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/schedule"
	"github.com/clusterregistry/operator/operator/store"
	"github.com/clusterregistry/operator/operator/verdict"
)

// backups are those of a registry in one reconcile.
type backups struct {
	all []*operatorv1alpha1.ClusterRegistryBackup
	// unreadable is why none can be read, nil when they can; and unread is true where all could
	// not be read.
	unreadable error
	unread     bool
	// task is what is done now, nil for nothing.
	task *backup.Task
	// blocked is why none can be begun.
	blocked verdict.Verdict
	// last is what is to be done about the one that a deletion waits for.
	last backup.Wait
}

// rendered returns what the Job of backups is to do.
func (b backups) rendered() render.Backup {
	if b.task == nil {
		return render.Backup{}
	}
	t := b.task
	return render.Backup{Step: string(t.Step), Task: t.ID(), Name: t.Name, UID: string(t.Object.UID), Lineage: t.Lineage, SkipUnchanged: t.SkipUnchanged, Transient: backup.Transient(b.all, t.Lineage)}
}

// observeBackups reads the backups of the registry, and decides what to do about them, before
// it is rendered: the Job is a part of that.
func (s *scope) observeBackups(ctx context.Context) {
	if err := s.backups.unreadable; err != nil {
		s.backups.unread = true
		s.backups.blocked = verdict.Failed(err)
		if errors.As(err, new(*unreadableError)) {
			s.backups.blocked = verdict.Waiting(operatorv1alpha1.ReasonBackupsUnreadable, "no backup can be taken: %s", err).In(verdict.Backstop)
		}
		return
	}
	all, undecodable, err := backupsOf(ctx, s.Client, client.ObjectKeyFromObject(s.Registry))
	if s.backups.all = all; err != nil {
		s.backups.unread = true
		s.backups.blocked = verdict.Failed(err)
		return
	}
	s.backups.unread = len(undecodable) > 0
	s.tellUndecodable(ctx, undecodable)
	if s.Registry.Spec.Backup == nil || s.PausedUntil() != "" {
		return
	}
	s.backups.blocked = s.backupsBlocked(ctx)
	status := operatorv1alpha1.BackupStatus{}
	if s.Registry.Status.Backup != nil {
		status = *s.Registry.Status.Backup
	}
	lineage := ""
	if s.Identity.Record != nil {
		lineage = s.Identity.Record.Lineage
	}
	task := backup.Choose(s.backups.all, status, lineage)
	if task != nil && !s.backups.blocked.Complete() && !begun(*task) {
		task = nil
	}
	// No Job is rendered there, also none that ends what a later release has begun.
	if s.backups.blocked.Reason == operatorv1alpha1.ReasonBackupUnsupported {
		task = nil
	}
	s.backups.task = task
}

// begun reports whether a task was begun before, or is the deletion of a backup, which does
// not wait for a store that can't be used.
func begun(t backup.Task) bool {
	phase := t.Object.Status.Phase
	return t.Step == backup.Delete || phase == operatorv1alpha1.BackupSaving || phase == operatorv1alpha1.BackupVerifying
}

// backUp takes the backups of the registry one step further, where the spec asks for any.
// Whatever becomes of that, the registry is driven further.
func (s *scope) backUp(ctx context.Context) {
	if s.Registry.Spec.Backup == nil {
		if err := s.withoutBackups(ctx); err != nil {
			logf.FromContext(ctx).Error(err, "end the backups of a registry without spec.backup; the operator will retry")
		}
		return
	}
	if s.Registry.Status.Backup == nil {
		s.Registry.Status.Backup = &operatorv1alpha1.BackupStatus{}
	}
	times, invalid := schedule.Parse(s.Registry.Spec.Backup.Schedule, s.Registry.Spec.Backup.TimeZone)
	var v verdict.Verdict
	if !s.ReadOnly() {
		v = s.stepBackups(ctx, times)
	}
	if err := v.Err; err != nil {
		logf.FromContext(ctx).Error(err, "take backups of the registry; the operator will retry")
	}
	s.verdicts[operatorv1alpha1.ConditionBackupReady] = s.judgeBackups(times, invalid, v)
}

// stepBackups does what is due. The verdict is one of an error, or says when to come back.
func (s *scope) stepBackups(ctx context.Context, times schedule.Schedule) verdict.Verdict {
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
	backup.Summarize(status, s.backups.all)
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
func (s *scope) judgeBackups(times schedule.Schedule, invalid error, step verdict.Verdict) verdict.Verdict {
	spec, status := s.Registry.Spec.Backup, s.Registry.Status.Backup
	status.NextRun = nil
	if next := backup.Next(times, *status, s.Now); !next.IsZero() && !spec.Suspend && s.backups.blocked.Complete() && s.Deleting() == "" {
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
	case !s.backups.blocked.Complete():
		// The Secret that is awaited is not watched.
		v = s.backups.blocked.In(cmp.Or(s.backups.blocked.After, verdict.Backstop))
	default:
		finding := backup.Judge(*spec, times, *status, s.backups.all, s.Now)
		v = verdict.Verdict{Reason: finding.Reason, Message: finding.Message}
		if !finding.Good {
			v.State = verdict.Degraded
		}
	}
	v.After = cmp.Or(step.After, s.backups.last.After, v.After, verdict.Vigil)
	if s.backups.task != nil {
		v.After = min(v.After, verdict.Backstop)
	}
	if away := status.StoreUnreachable; away != nil && away.NextAttempt != nil {
		v.After = min(v.After, max(verdict.AtOnce, away.NextAttempt.Sub(s.Now)))
	}
	if status.NextRun != nil {
		v.After = min(v.After, max(verdict.AtOnce, status.NextRun.Sub(s.Now)))
	}
	return v
}

// backupsBlocked says why no backup can be begun, done when one can.
func (s *scope) backupsBlocked(ctx context.Context) verdict.Verdict {
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
func (s *scope) backupJob(ctx context.Context) (backup.Outcome, error) {
	stale, err := job.Apply(ctx, s.Objects, render.StageBackup)
	if err != nil || !stale && s.backups.task == nil {
		return backup.Outcome{}, err
	}
	var outcome backup.Outcome
	if !stale {
		var v verdict.Verdict
		if _, outcome, stale, v = job.Read(ctx, s.Objects, render.StageBackup, s.backups.task.ID(), operand.ComponentBackup); !v.Complete() {
			return backup.Outcome{Message: v.Message}, v.Err
		}
	}
	if stale {
		return backup.Outcome{Message: job.Earlier}, s.deleteBackupJob(ctx)
	}
	return outcome, nil
}
