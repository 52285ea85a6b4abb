package restoring

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/job"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation/recovery"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/verdict"
)

const (
	// retryLookUp is how long after a Job that failed the backup is looked up again.
	retryLookUp = 30 * time.Second
	// lookUpHolds is how long after its Job has ended a registry may begin with what was found.
	// While it is paused, or the spec does not fit, newer backups are taken, and old ones go.
	lookUpHolds = 10 * time.Minute
)

// LookUp finds out which backup it is and whether it can be restored, before anything is made.
// It is done when the first record may be made, or there is nothing to look up: also where a
// recovery is approved, which waits for its backup, and nothing else does.
func (s *Stage) LookUp(ctx context.Context) (Found, verdict.Verdict) {
	v := s.lookUp(ctx)
	if s.Found.asked && !v.Complete() {
		s.Found.Recovery.Verdict = recovery.Held("%s", v.Message).In(v.After)
		v = done
	}
	return s.Found, v
}

func (s *Stage) lookUp(ctx context.Context) verdict.Verdict {
	if s.Found.source == nil && s.Found.pending == nil {
		return done
	}
	if s.ReadOnly() {
		if s.Found.pending != nil {
			return done // the stages say so
		}
		return pending("the backup is looked up when %s", s.ReadOnlyUntil())
	}
	switch stale, err := job.Apply(ctx, s.Objects, render.StageRestore); {
	case err != nil:
		return verdict.Failed(err)
	case stale:
		return s.lookUpAgain(ctx, job.Earlier)
	case s.Found.pending != nil:
		return done
	}
	found, outcome, stale, v := job.Read(ctx, s.Objects, render.StageRestore, s.Found.source.task(), operand.ComponentRestore)
	switch {
	case v.Err != nil:
		return v
	case !v.Complete():
		v.Reason = operatorv1alpha1.ReasonRestorePending
		return v
	case stale:
		return s.lookUpAgain(ctx, job.Earlier)
	}
	return s.lookedUp(ctx, found, outcome)
}

// lookedUp continues with what came of the Job.
func (s *Stage) lookedUp(ctx context.Context, job *batchv1.Job, outcome backup.Outcome) verdict.Verdict {
	switch outcome.State {
	case backup.Running:
		if outcome.Message == "" {
			outcome.Message = "Job " + job.Name + " runs"
		}
		return pending("the backup is being looked up: %s", outcome.Message)
	case backup.Lost:
		return s.lookUpAgain(ctx, outcome.Message)
	case backup.Failed, backup.Damaged, backup.Unreachable:
		if ended := endOf(job); !ended.IsZero() && s.Now.Sub(ended) > retryLookUp {
			return s.lookUpAgain(ctx, outcome.Message)
		}
		return pending("the backup can't be found, and nothing is made: %s; the operator looks again", outcome.Message).In(retryLookUp)
	}
	report, ok := outcome.Shown()
	if !ok {
		return refused("the Job %s has reported no backup: the image of the release does not fit this operator; delete the Job to look again", job.Name)
	}
	if err := s.target().Refuse(report); err != nil && s.Found.asked {
		return recovery.Held("%s", err)
	} else if err != nil {
		return refused("%s", err)
	}
	if ended := endOf(job); s.Now.Sub(ended) > lookUpHolds {
		return s.lookUpAgain(ctx, fmt.Sprintf("what was found at %s may no longer be so", ended.UTC().Format(time.RFC3339)))
	}
	if s.Found.asked {
		return s.foundBackup(report)
	}
	s.beginWith(report)
	return done
}

// endOf returns when a Job was done or failed, zero when it runs.
func endOf(job *batchv1.Job) time.Time {
	for _, condition := range job.Status.Conditions {
		if ended := condition.Type == batchv1.JobFailed || condition.Type == batchv1.JobComplete; ended && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// target is what the backup would be restored into.
func (s *Stage) target() restore.Target {
	t := restore.Target{Releases: s.Releases, Release: s.Release, Host: s.HostVersion, Storage: render.EtcdStorage(s.Registry), SHA256: s.Found.source.sha256, Needs: s.Found.source.keys}
	keys := s.Keys.Desired
	if s.Found.asked {
		t.Again = "name another one in spec.recovery.name"
		keys = s.Keys.InUse // in a recovery, servers keep those that they have
	}
	if keyring.Rendered(keys) != nil {
		t.Keys = keys.IDs()
	}
	return t
}

// lookUpAgain deletes the Job, which is made again.
func (s *Stage) lookUpAgain(ctx context.Context, why string) verdict.Verdict {
	if err := job.Delete(ctx, s.Objects, contract.RestoreSuffix); err != nil {
		return verdict.Failed(err)
	}
	return pending("the backup is looked up again: %s", why).In(verdict.Soon)
}
