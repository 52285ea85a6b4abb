package backups

import (
	"context"
	"fmt"
	"strings"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/verdict"
)

// takeBefore takes the backup that belongs to a snapshot, or waits for it. There is none
// where spec.backup is not set or suspended, or the release that runs can't be backed up.
func (s *Stage) takeBefore(ctx context.Context, snapshotName string) verdict.Verdict {
	spec, blocked := s.Registry.Spec.Backup, s.Found.blocked
	if spec == nil || spec.Suspend || blocked.Reason == operatorv1alpha1.ReasonBackupUnsupported {
		return done
	}
	const orSuspend = "; to continue without a backup, set spec.backup.suspend to true"
	if !blocked.Complete() {
		return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "nothing was changed: a backup comes first, and %s%s", blocked.Message, orSuspend)
	}
	needed := backup.Needed{Prefix: fmt.Sprintf("%s-%s-op", s.Registry.Name, snapshotName[strings.LastIndex(snapshotName, "-")+1:]), Verified: spec.Verify != operatorv1alpha1.VerifyNever}
	if s.Identity.Record != nil {
		needed.Lineage = s.Identity.Record.Lineage
	}
	wait := needed.Await(s.Found.All, s.Now)
	if wait.Done != nil {
		return done
	}
	if wait.Create != "" {
		reason := operatorv1alpha1.BackupUpgrade
		if o := s.Registry.Status.Operation; o != nil && o.Type == operatorv1alpha1.OperationScale {
			reason = operatorv1alpha1.BackupScale
		}
		if err := s.createBackup(ctx, wait.Create, reason); err != nil {
			return verdict.Failed(err)
		}
	}
	v := verdict.Waiting(operatorv1alpha1.ReasonProgressing, "a backup comes first: %s", wait.Message)
	if status := s.Registry.Status.Backup; wait.Failing || status != nil && status.StoreUnreachable != nil {
		v.Message = "nothing was changed: " + v.Message + orSuspend
	}
	return v
}
