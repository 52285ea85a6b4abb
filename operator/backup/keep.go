package backup

import (
	"slices"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

const (
	// Most is how many objects a registry may have: each is held in the operator's memory.
	Most = 100
	// mostFailed is how many objects of failures in a row are kept.
	mostFailed = 3
)

// Obsolete returns the objects that may go, the oldest first, without anything in the store:
// those of backups that were skipped and counted, those of failures that a success or more
// failures followed, and what is beyond Most. The newest backup that is usable and the newest
// one that was verified never go, and one that was made by a person only as one too many.
// What is to be deleted in the store together with its object is for a person to delete.
func Obsolete(all []*operatorv1alpha1.ClusterRegistryBackup, status operatorv1alpha1.BackupStatus) []*operatorv1alpha1.ClusterRegistryBackup {
	var ended []*operatorv1alpha1.ClusterRegistryBackup
	for _, b := range all {
		if b.Status.Phase.Ended() && b.Status.CompletionTime != nil && b.DeletionTimestamp == nil && b.Spec.DeletionPolicy != operatorv1alpha1.BackupDeletionPolicyDelete {
			ended = append(ended, b)
		}
	}
	slices.SortFunc(ended, func(a, b *operatorv1alpha1.ClusterRegistryBackup) int {
		return b.Status.CompletionTime.Compare(a.Status.CompletionTime.Time)
	})
	var out, left []*operatorv1alpha1.ClusterRegistryBackup
	good, verified, failures := 0, 0, 0
	for _, b := range ended { // the newest first
		stays := false
		switch b.Status.Phase {
		case operatorv1alpha1.BackupCompleted:
			stays = good == 0 || verified == 0 && b.Status.VerifiedTime != nil
			good++
			if b.Status.VerifiedTime != nil {
				verified++
			}
		case operatorv1alpha1.BackupSkipped:
			if counted(b, status) {
				out = append(out, b)
				continue
			}
			stays = true
		case operatorv1alpha1.BackupFailed:
			if failures++; Made(b) && (failures > mostFailed || followed(b, status)) {
				out = append(out, b)
				continue
			}
		}
		if !stays {
			left = append(left, b)
		}
	}
	tooMany := len(all) - len(out) - Most
	for i := len(left) - 1; i >= 0 && tooMany > 0; i-- {
		out, tooMany = append(out, left[i]), tooMany-1
	}
	slices.SortFunc(out, func(a, b *operatorv1alpha1.ClusterRegistryBackup) int {
		return a.Status.CompletionTime.Compare(b.Status.CompletionTime.Time)
	})
	return out
}

// Transient counts the backups of a lineage that go with their objects, so that spec.backup's
// retention keeps as many others as it says.
func Transient(all []*operatorv1alpha1.ClusterRegistryBackup, lineage string) int {
	n := 0
	for _, b := range all {
		if b.Spec.DeletionPolicy == operatorv1alpha1.BackupDeletionPolicyDelete && b.Status.Lineage == lineage && HasContent(b) {
			n++
		}
	}
	return n
}

// counted reports whether a success is in the status of the registry.
func counted(b *operatorv1alpha1.ClusterRegistryBackup, status operatorv1alpha1.BackupStatus) bool {
	return status.LastSuccess != nil && !status.LastSuccess.Time.Before(b.Status.CompletionTime)
}

// followed reports whether a backup succeeded after a failure.
func followed(b *operatorv1alpha1.ClusterRegistryBackup, status operatorv1alpha1.BackupStatus) bool {
	return status.LastSuccess != nil && b.Status.CompletionTime.Before(&status.LastSuccess.Time)
}
