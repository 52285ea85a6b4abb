// Package backups is the stage of a registry's backups: what is due is taken, verified, pruned
// and deleted by one Job at a time, and the objects of backups say what becomes of them. What is
// done next is decided by operator/backup. Nothing that clients of the registry need depends on
// it, but a deletion and an operation that can't be taken back may wait for a backup.
package backups

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/job"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/schedule"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Stage is the stage in one reconcile.
type Stage struct {
	pass.Pass
	// Found is what was observed of the backups, which Observe returns.
	Found Found
}

// Found is what was found of the backups of a registry.
type Found struct {
	// Verdict is what came of it, of a registry that is to be backed up.
	verdict.Verdict
	// All are the backups that can be decoded.
	All []*operatorv1alpha1.ClusterRegistryBackup
	// Unread is true where not all could be read.
	Unread bool

	// task is what is done now, nil for nothing.
	task *backup.Task
	// blocked is why none can be begun.
	blocked verdict.Verdict
	// last is what is to be done about the one that a deletion waits for.
	last backup.Wait
}

// done is the verdict of a part that has nothing to say.
var done verdict.Verdict

// Rendered returns what the Job of backups is to do.
func (f Found) Rendered() render.Backup {
	if f.task == nil {
		return render.Backup{}
	}
	t := f.task
	return render.Backup{Step: string(t.Step), Task: t.ID(), Name: t.Name, UID: string(t.Object.UID), Lineage: t.Lineage, SkipUnchanged: t.SkipUnchanged, Transient: backup.Transient(f.All, t.Lineage)}
}

// Observe reads the backups of the registry, and decides what to do about them, before it is
// rendered: the Job is a part of that. None are read where unreadable says why they can't be.
func (s *Stage) Observe(ctx context.Context, unreadable error) Found {
	s.Found = Found{}
	s.observe(ctx, unreadable)
	return s.Found
}

func (s *Stage) observe(ctx context.Context, unreadable error) {
	if err := unreadable; err != nil {
		s.Found.Unread = true
		s.Found.blocked = verdict.Failed(err)
		if errors.As(err, new(*unreadableError)) {
			s.Found.blocked = verdict.Waiting(operatorv1alpha1.ReasonBackupsUnreadable, "no backup can be taken: %s", err).In(verdict.Backstop)
		}
		return
	}
	all, undecodable, err := backupsOf(ctx, s.Client, client.ObjectKeyFromObject(s.Registry))
	if s.Found.All = all; err != nil {
		s.Found.Unread = true
		s.Found.blocked = verdict.Failed(err)
		return
	}
	s.Found.Unread = len(undecodable) > 0
	s.tellUndecodable(ctx, undecodable)
	if s.Registry.Spec.Backup == nil || s.PausedUntil() != "" {
		return
	}
	s.Found.blocked = s.backupsBlocked(ctx)
	status := operatorv1alpha1.BackupStatus{}
	if s.Registry.Status.Backup != nil {
		status = *s.Registry.Status.Backup
	}
	lineage := ""
	if s.Identity.Record != nil {
		lineage = s.Identity.Record.Lineage
	}
	ofJob, err := job.Task(ctx, s.Objects, contract.BackupSuffix)
	if err != nil {
		s.Found.blocked = verdict.Failed(err)
		return
	}
	task := backup.Choose(s.Found.All, status, lineage, ofJob, s.Now)
	if task != nil && !s.Found.blocked.Complete() && task.ID() != ofJob && !begun(*task) {
		task = nil
	}
	// No Job is rendered there, also none that ends what a later release has begun.
	if s.Found.blocked.Reason == operatorv1alpha1.ReasonBackupUnsupported {
		task = nil
	}
	s.Found.task = task
}

// begun reports whether a task was begun before, or is the deletion of a backup, which does
// not wait for a store that can't be used.
func begun(t backup.Task) bool {
	phase := t.Object.Status.Phase
	return t.Step == backup.Delete || phase == operatorv1alpha1.BackupSaving || phase == operatorv1alpha1.BackupVerifying
}

// Run takes the backups of the registry one step further, where the spec asks for any.
// Whatever becomes of that, the registry is driven further.
func (s *Stage) Run(ctx context.Context) Found {
	if s.Registry.Spec.Backup == nil {
		if err := s.withoutBackups(ctx); err != nil {
			logf.FromContext(ctx).Error(err, "end the backups of a registry without spec.backup; the operator will retry")
		}
		return s.Found
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
	s.Found.Verdict = s.judgeBackups(times, invalid, v)
	return s.Found
}
