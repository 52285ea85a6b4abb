package backup

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// NotRemoved notes in the status of a registry that old backups could not be removed from its
// store, and when that is tried again.
func NotRemoved(status *operatorv1alpha1.BackupStatus, why string, now time.Time) {
	if status.PruneFailure == nil {
		status.PruneFailure = &operatorv1alpha1.PruneFailure{Since: metav1.NewTime(now)}
	}
	status.PruneFailure.NextAttempt, status.PruneFailure.Message = metav1.NewTime(now.Add(retryAfter)), why
}

// removesAgain identifies the attempt to remove old backups that follows one that failed, empty
// while none is due. A time that is further ahead than any is was written by another clock.
func removesAgain(status operatorv1alpha1.BackupStatus, now time.Time) string {
	failure := status.PruneFailure
	if failure == nil || now.Before(failure.NextAttempt.Time) && failure.NextAttempt.Sub(now) <= retryAfter+ahead {
		return ""
	}
	return stamp(failure.NextAttempt)
}

// notRemoved says since when old backups can't be removed, and when that is tried next.
func notRemoved(status operatorv1alpha1.BackupStatus, now time.Time) string {
	failure, next := status.PruneFailure, "another attempt is in progress"
	if removesAgain(status, now) == "" {
		next = "the operator will retry at " + stamp(failure.NextAttempt)
	}
	return fmt.Sprintf("old backups can't be removed since %s, and %s: %s", stamp(failure.Since), next, failure.Message)
}
