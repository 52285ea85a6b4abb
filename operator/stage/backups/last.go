package backups

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/verdict"
)

// deletionPolicy Snapshot: a registry that is deleted keeps running until a backup is verified
// that was taken since, which is then recorded, and only after that goes the first part of it.
// In a namespace that is terminating, nothing can be created and nothing is held: there the
// newest verified backup is what is left.

const (
	eventLastBackup   = "LastBackup"
	eventNoLastBackup = "NoLastBackup"
	actionDelete      = "Delete"
	// noBackupThere begins what is said of a namespace that is terminating.
	noBackupThere = "no backup can be taken in a namespace that is terminating: "
	// orNoBackup is how a person ends the wait for the last backup.
	orNoBackup = "; to delete the registry without it, set spec.deletionPolicy to Retain, which keeps the data, or to Delete"
	// lastBackupAge is how old a last backup may be when the deletion begins.
	lastBackupAge = 30 * time.Minute
	// foreground is on an object that was deleted with --cascade=foreground.
	foreground = metav1.FinalizerDeleteDependents
)

// saved reports whether the data is in a backup that was taken for this deletion. What is
// recorded of another one, as in a status that was restored with its registry, says nothing.
func (s *Stage) saved() bool {
	prefix, status := s.needsLast().Prefix, s.Registry.Status.Backup
	return prefix != "" && status != nil && status.Deletion != nil && strings.HasPrefix(status.Deletion.Name, prefix)
}

// neverStored reports whether the registry has no data: no etcd of it has formed, as its record
// says, or it is still being restored from a backup. Volumes without a record may have data.
func (s *Stage) neverStored() bool {
	if s.Identity.Err != nil || s.Installed() {
		return false
	}
	if s.Identity.Record == nil {
		return len(s.Volumes.Members) == 0
	}
	return s.Identity.Record.ClusterID == "" || s.Identity.Record.Restored.Pending()
}

// DropsData reports whether the data goes with the registry. What deletionPolicy Snapshot did
// not save stays, as with Retain, and so does what is in the way of a restore that was refused:
// it is of an earlier registry.
func (s *Stage) DropsData() bool {
	if s.InTheWay != "" {
		return false
	}
	switch s.Registry.Spec.DeletionPolicy {
	case operatorv1alpha1.DeletionPolicyDelete:
		return true
	case operatorv1alpha1.DeletionPolicySnapshot:
		return s.saved()
	}
	return false
}

// SavesFirst reports whether nothing may be deleted yet: the last backup is not verified. What
// is in the way of a restore stays, and needs none.
func (s *Stage) SavesFirst() bool {
	return s.InTheWay == "" && s.Deleting() != "" && s.Registry.Spec.DeletionPolicy == operatorv1alpha1.DeletionPolicySnapshot && !s.Terminating && !s.saved() && !s.neverStored()
}

// needsLast is the backup that a deletion waits for.
func (s *Stage) needsLast() backup.Needed {
	needed := backup.Needed{Verified: true, Fresh: lastBackupAge}
	if at := s.Registry.DeletionTimestamp; at != nil {
		needed.Prefix = fmt.Sprintf("%s-%s-del", s.Registry.Name, at.UTC().Format("20060102-150405"))
	}
	if s.Identity.Record != nil {
		needed.Lineage = s.Identity.Record.Lineage
	}
	return needed
}

// awaitLast creates the last backup of a registry, or waits for it.
func (s *Stage) awaitLast(ctx context.Context) error {
	wait := s.needsLast().Await(s.Found.All, s.Now)
	s.Found.last = wait
	if done := wait.Done; done != nil {
		s.Registry.Status.Backup.Deletion = &operatorv1alpha1.BackupSuccess{Time: *done.Status.CompletionTime, Name: done.Name, Revision: done.Status.Revision, Bytes: done.Status.Bytes, Location: done.Status.Location, VerifiedTime: done.Status.VerifiedTime}
		s.Found.last.Message, s.Found.last.After = fmt.Sprintf("backup %s is verified", done.Name), verdict.AtOnce
		s.Event(corev1.EventTypeNormal, eventLastBackup, actionDelete, "the registry is deleted now, since its last backup %s is verified and stays at %s", done.Name, done.Status.Location)
		return nil
	}
	if wait.Create == "" || !s.Found.blocked.Complete() {
		return nil
	}
	return s.createBackup(ctx, wait.Create, operatorv1alpha1.BackupDeletion)
}

// AwaitsLast says what the deletion of a registry waits for before anything of it goes, and
// how a person ends that.
func (s *Stage) AwaitsLast(waits *metav1.Condition) string {
	out := "nothing of it is deleted before its last backup is verified: "
	switch halted, until := s.Halted(); {
	case s.saved():
		return s.Found.last.Message
	case s.Found.Err != nil:
		out += s.Found.Message
	case s.Registry.Spec.Backup == nil:
		out += "it has no spec.backup, which names the store"
	case halted != "":
		out += "no backup is taken until " + until
	case !s.Found.blocked.Complete():
		out += s.Found.blocked.Message
	case waits != nil && s.Found.task == nil:
		out += "waiting for " + waits.Type + ": " + waits.Message
	case s.Found.last.Message != "":
		out += s.Found.last.Message
	default:
		out += "waiting for etcd to be complete"
	}
	if slices.Contains(s.Registry.Finalizers, foreground) {
		out += "; it was deleted with --cascade=foreground, by which the host cluster deletes its parts before it: remove the finalizer " + foreground + " from it"
	}
	return out + orNoBackup
}

// Gap says what is lost with a registry whose namespace is terminating before its last backup
// could be taken, nothing when that is not so.
func (s *Stage) Gap(all []*operatorv1alpha1.ClusterRegistryBackup) string {
	if s.Registry.Spec.DeletionPolicy != operatorv1alpha1.DeletionPolicySnapshot || !s.Terminating || s.saved() || s.neverStored() {
		return ""
	}
	lineage := s.needsLast().Lineage
	if lineage == "" && s.Registry.Status.Backup != nil {
		lineage = s.Registry.Status.Backup.Lineage // etcd's record went first
	}
	newest := backup.NewestVerified(all, lineage)
	if newest == nil {
		return noBackupThere + "there is no verified backup of this data"
	}
	return noBackupThere + fmt.Sprintf("backup %s of %s, at %s, is the newest that is verified, and what was written since is in none", newest.Name, newest.Status.TakenTime.UTC().Format(time.RFC3339), newest.Status.Location)
}

// TellGap says once, in an event, what is lost with a namespace that is terminating. The event
// is about the namespace: within it, the host cluster lets no event be created.
func (s *Stage) TellGap(gap string) {
	if before := meta.FindStatusCondition(s.Before.Conditions, operatorv1alpha1.ConditionProgressing); gap == "" || before != nil && strings.Contains(before.Message, noBackupThere) {
		return
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Registry.Namespace}}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	s.Events.Eventf(namespace, nil, corev1.EventTypeWarning, eventNoLastBackup, actionDelete, "ClusterRegistry %s: %s", client.ObjectKeyFromObject(s.Registry), gap)
}
