package backup

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/schedule"
)

// Summarize brings what the status of a registry says of its backups up to date. What was
// written before counts on where its object is gone. Backups of another lineage, such as of a
// registry of the same name that was deleted, say nothing about this one.
func Summarize(status *operatorv1alpha1.BackupStatus, all []*operatorv1alpha1.ClusterRegistryBackup) {
	status.Window = nil
	damaged := map[string]bool{}
	for _, b := range all {
		damaged[b.Name] = b.Status.Phase == operatorv1alpha1.BackupDamaged && HasContent(b)
		if failure := status.LastFailure; failure != nil && failure.Name == b.Name && b.Status.Phase == operatorv1alpha1.BackupCompleted && HasContent(b) {
			status.LastFailure = nil // another verification has found it good
		}
	}
	if last := status.LastSuccess; last != nil && damaged[last.Name] {
		status.LastSuccess = nil // another verification has found it damaged
	}
	for _, b := range all {
		at := b.Status.CompletionTime
		if at == nil || neverBegun(b) || b.Status.Lineage != "" && b.Status.Lineage != status.Lineage {
			continue
		}
		switch b.Status.Phase {
		case operatorv1alpha1.BackupCompleted, operatorv1alpha1.BackupSkipped:
			if damaged[b.Status.Name] {
				continue
			}
			if b.Status.Phase == operatorv1alpha1.BackupCompleted && b.Status.TakenTime != nil {
				at = b.Status.TakenTime // whenever it was found good
				widen(status, *at)
			}
			if last := status.LastSuccess; last == nil || last.Time.Before(at) || last.Time.Equal(at) && last.Name == b.Status.Name {
				status.LastSuccess = &operatorv1alpha1.BackupSuccess{Time: *at, Name: b.Status.Name, Revision: b.Status.Revision, Bytes: b.Status.Bytes, Location: b.Status.Location, VerifiedTime: b.Status.VerifiedTime}
			}
		case operatorv1alpha1.BackupFailed, operatorv1alpha1.BackupDamaged:
			if status.LastFailure == nil || status.LastFailure.Time.Before(at) {
				status.LastFailure = &operatorv1alpha1.BackupFailure{Time: *at, Name: b.Name, Message: b.Status.Message}
			}
		}
	}
}

func widen(status *operatorv1alpha1.BackupStatus, taken metav1.Time) {
	switch w := status.Window; {
	case w == nil:
		status.Window = &operatorv1alpha1.BackupWindow{Oldest: taken, Newest: taken}
	case taken.Before(&w.Oldest):
		w.Oldest = taken
	case w.Newest.Before(&taken):
		w.Newest = taken
	}
}

// Finding is what BackupReady says.
type Finding struct {
	// Good is true where the last backup succeeded, and none is overdue.
	Good            bool
	Reason, Message string
}

// Judge says how the backups of a registry are. What blocks them, such as a Secret that is
// missing, is known to the caller, and comes first.
func Judge(spec operatorv1alpha1.Backup, s schedule.Schedule, status operatorv1alpha1.BackupStatus, all []*operatorv1alpha1.ClusterRegistryBackup, now time.Time) Finding {
	finding := judge(spec, s, status, all, now)
	if status.PruneFailure != nil {
		if finding.Good {
			finding.Reason = operatorv1alpha1.ReasonBackupsNotRemoved
		}
		finding.Message += "; " + notRemoved(status, now)
	}
	if away := status.StoreUnreachable; away != nil {
		if finding.Reason != operatorv1alpha1.ReasonVerificationFailed { // which is worse
			finding = Finding{Reason: operatorv1alpha1.ReasonStoreUnreachable, Message: last(status.LastSuccess)}
		}
		finding.Message = unreachable(*away) + "; " + finding.Message
	}
	return finding
}

// judge says how the backups are, whether their store can be reached or not.
func judge(spec operatorv1alpha1.Backup, s schedule.Schedule, status operatorv1alpha1.BackupStatus, all []*operatorv1alpha1.ClusterRegistryBackup, now time.Time) Finding {
	success, failure := status.LastSuccess, status.LastFailure
	if failure != nil && (success == nil || success.Time.Before(&failure.Time)) {
		finding := Finding{Reason: operatorv1alpha1.ReasonBackupFailed, Message: fmt.Sprintf("backup %s failed at %s: %s; %s", failure.Name, stamp(failure.Time), failure.Message, last(success))}
		for _, b := range all {
			if b.Name == failure.Name && HasContent(b) {
				finding.Reason = operatorv1alpha1.ReasonVerificationFailed
			}
		}
		return finding
	}
	switch {
	case Overdue(s, status, now) && !spec.Suspend:
		return Finding{Reason: operatorv1alpha1.ReasonBackupOverdue, Message: fmt.Sprintf("no backup has succeeded for two periods of the schedule %q; %s; %s", spec.Schedule, last(success), under(all))}
	case spec.Suspend:
		return Finding{Reason: operatorv1alpha1.ReasonBackupSuspended, Message: "no backup is scheduled until spec.backup.suspend is false; " + last(success)}
	case success == nil:
		return Finding{Reason: operatorv1alpha1.ReasonFirstBackupPending, Message: "Waiting for the first backup; " + under(all)}
	}
	message := last(success)
	if next := Next(s, status, now); !next.IsZero() {
		message += "; the next one is due at " + stamp(metav1.NewTime(next))
	}
	return Finding{Good: true, Reason: operatorv1alpha1.ReasonBackedUp, Message: message}
}

// last says which backup was the last one that succeeded.
func last(success *operatorv1alpha1.BackupSuccess) string {
	switch {
	case success == nil:
		return "no backup has succeeded yet"
	case success.VerifiedTime == nil:
		return fmt.Sprintf("the last backup that succeeded, at %s, is %s, which was not verified", stamp(success.Time), success.Name)
	}
	return fmt.Sprintf("the last backup that succeeded, at %s, is %s, verified at %s", stamp(success.Time), success.Name, stamp(*success.VerifiedTime))
}

// under says what is under way.
func under(all []*operatorv1alpha1.ClusterRegistryBackup) string {
	for _, b := range all {
		if !b.Status.Phase.Ended() && b.DeletionTimestamp == nil {
			text := fmt.Sprintf("ClusterRegistryBackup %s is %s", b.Name, orPending(b.Status.Phase))
			if b.Status.Message != "" {
				text += ": " + b.Status.Message
			}
			return text
		}
	}
	return "none is under way"
}

func orPending(phase operatorv1alpha1.BackupPhase) operatorv1alpha1.BackupPhase {
	if phase == "" {
		return operatorv1alpha1.BackupPending
	}
	return phase
}

func stamp(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }
