package backup

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Step is what a Job does.
type Step string

// The steps, by the commands of the helper.
const (
	// Save takes a backup.
	Save Step = "save"
	// Verify restores one on trial.
	Verify Step = "verify"
	// Prune removes old ones.
	Prune Step = "prune"
	// Delete deletes one.
	Delete Step = "delete"
)

// Task is what the Job of a registry's backups is to do now. There is one at a time: all
// have the same Job.
type Task struct {
	Step Step
	// Object is the one for which it is done: of Prune, the newest backup.
	Object *operatorv1alpha1.ClusterRegistryBackup
	// Name is the name of the backup in the store, and Lineage the directory that it is in.
	Name, Lineage string
	// SkipUnchanged has no backup taken when nothing has changed since the one before.
	SkipUnchanged bool
	// Request is, of Verify, the request by which a backup that has ended is verified again;
	// empty for the verification that is a part of the backup.
	Request string
	// Again identifies, of Prune, the attempt after one that failed; empty for the first one after
	// a backup.
	Again string
}

// ID identifies the task, on its Job.
func (t Task) ID() string {
	return strings.TrimSpace(strings.Join([]string{string(t.Step), t.Name, string(t.Object.UID), cmp.Or(t.Request, t.Again)}, " "))
}

// Choose returns what to do next about the backups of a registry, nil for nothing: first what
// was begun, then what is to be deleted, then what follows from a backup that succeeded, then
// one that waits, then what is to be removed although it could not be, and then what is to be
// verified again: of that there may be any number, and again and again. While the store can't be
// reached, what was begun may last, and a deletion does not wait for it, but for an attempt that
// is in progress. The lineage is the present one, empty while there is none. The Job that there is
// has the task with the ID begun: only it knows which backups it has removed.
func Choose(all []*operatorv1alpha1.ClusterRegistryBackup, status operatorv1alpha1.BackupStatus, lineage, begun string, now time.Time) *Task {
	sorted := oldestFirst(all)
	deletion := nextDeletion(sorted)
	if away := status.StoreUnreachable; deletion != nil && away != nil && away.NextAttempt != nil {
		return deletion
	}
	for _, b := range sorted {
		switch b.Status.Phase {
		case operatorv1alpha1.BackupSaving:
			return save(b, b.Status.Lineage)
		case operatorv1alpha1.BackupVerifying:
			return &Task{Step: Verify, Object: b, Name: b.Status.Name, Lineage: b.Status.Lineage}
		}
	}
	prune := nextPrune(sorted, status, lineage, now)
	switch waiting := nextWaiting(sorted); {
	case prune != nil && prune.ID() == begun:
		return prune
	case deletion != nil:
		return deletion
	case prune != nil && prune.Again == "":
		return prune
	case waiting != nil && lineage != "":
		return save(waiting, lineage)
	case prune != nil:
		return prune
	}
	for _, b := range sorted {
		if request := verifyRequest(b); request != "" {
			return &Task{Step: Verify, Object: b, Name: b.Name, Lineage: b.Status.Lineage, Request: request}
		}
	}
	return nil
}

// nextDeletion returns the deletion of a backup in the store whose object waits for that, nil when
// none does. One that is being verified is not among them.
func nextDeletion(sorted []*operatorv1alpha1.ClusterRegistryBackup) *Task {
	for _, b := range sorted {
		if b.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(b, operatorv1alpha1.FinalizerBackup) && HasContent(b) && b.Status.Phase.Ended() {
			return &Task{Step: Delete, Object: b, Name: b.Name, Lineage: b.Status.Lineage}
		}
	}
	return nil
}

// nextPrune returns the removal of old backups that is due, nil where none is.
func nextPrune(sorted []*operatorv1alpha1.ClusterRegistryBackup, status operatorv1alpha1.BackupStatus, lineage string, now time.Time) *Task {
	newest := newestSuccess(sorted, lineage)
	if lineage == "" || newest == nil {
		return nil
	}
	again := ""
	if newest.Name == status.Pruned {
		if again = removesAgain(status, now); again == "" {
			return nil
		}
	}
	return &Task{Step: Prune, Object: newest, Name: newest.Name, Lineage: lineage, Again: again}
}

func oldestFirst(all []*operatorv1alpha1.ClusterRegistryBackup) []*operatorv1alpha1.ClusterRegistryBackup {
	return slices.SortedFunc(slices.Values(all), func(a, b *operatorv1alpha1.ClusterRegistryBackup) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
}

func save(b *operatorv1alpha1.ClusterRegistryBackup, lineage string) *Task {
	return &Task{Step: Save, Object: b, Name: b.Name, Lineage: lineage, SkipUnchanged: Scheduled(b)}
}

// longestRequest is how much of a request to verify is compared and kept.
const longestRequest = 64

// verifyRequest returns the request to verify a backup again, empty when there is none that
// was not carried out, or no content of its own to verify.
func verifyRequest(b *operatorv1alpha1.ClusterRegistryBackup) string {
	request := b.Annotations[operatorv1alpha1.AnnotationVerify]
	request = strings.ToValidUTF8(request[:min(len(request), longestRequest)], "")
	if request == b.Status.VerifyRequest || b.DeletionTimestamp != nil || !b.Status.Phase.Ended() || !HasContent(b) {
		return ""
	}
	return request
}

// Scheduled reports whether a backup was made by the schedule.
func Scheduled(b *operatorv1alpha1.ClusterRegistryBackup) bool {
	return reason(b) == operatorv1alpha1.BackupScheduled
}

// Made reports whether a backup was made by the operator: no person waits for it.
func Made(b *operatorv1alpha1.ClusterRegistryBackup) bool {
	switch reason(b) {
	case operatorv1alpha1.BackupScheduled, operatorv1alpha1.BackupDeletion, operatorv1alpha1.BackupUpgrade, operatorv1alpha1.BackupScale:
		return true
	}
	return false
}

func reason(b *operatorv1alpha1.ClusterRegistryBackup) operatorv1alpha1.BackupReason {
	return operatorv1alpha1.BackupReason(b.Annotations[operatorv1alpha1.AnnotationBackupReason])
}

// HasContent reports whether the object has a backup of its own in the store. One that was
// skipped has that of another object, and one that failed may share its name with a backup
// that someone else has taken.
func HasContent(b *operatorv1alpha1.ClusterRegistryBackup) bool {
	return b.Status.Location != "" && b.Status.Name == b.Name
}

// newestSuccess returns the backup of a lineage that was completed last, nil when there is
// none.
func newestSuccess(all []*operatorv1alpha1.ClusterRegistryBackup, lineage string) *operatorv1alpha1.ClusterRegistryBackup {
	var newest *operatorv1alpha1.ClusterRegistryBackup
	for _, b := range all {
		if b.Status.Phase == operatorv1alpha1.BackupCompleted && b.Status.Lineage == lineage && b.Status.CompletionTime != nil &&
			(newest == nil || newest.Status.CompletionTime.Before(b.Status.CompletionTime)) {
			newest = b
		}
	}
	return newest
}
