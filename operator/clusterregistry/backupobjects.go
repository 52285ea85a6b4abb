package clusterregistry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/job"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/schedule"
)

// Events about backups.
const (
	eventBackupCompleted   = "BackupCompleted"
	eventBackupFailed      = "BackupFailed"
	eventBackupDamaged     = "BackupDamaged"
	eventBackupVerified    = "BackupVerified"
	eventBackupNotVerified = "BackupNotVerified"
	eventBackupsPruned     = "BackupsPruned"
	eventBackupPruneFailed = "BackupPruneFailed"
	eventBackupContentLeft = "BackupContentLeft"
	actionBackup           = "Backup"
)

// backupsOf returns the backups of a registry, as the cache has them, and apart from them those
// that can't be decoded. What is written about one is refused when it has changed since.
func backupsOf(ctx context.Context, reader client.Reader, key client.ObjectKey) (out, undecodable []*operatorv1alpha1.ClusterRegistryBackup, err error) {
	list := &operatorv1alpha1.ClusterRegistryBackupList{}
	if err := reader.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		return nil, nil, fmt.Errorf("list the backups of %s: %w", key, err)
	}
	for i := range list.Items {
		b := &list.Items[i]
		switch of := b.Spec.RegistryRef.Name; {
		case informers.Undecodable(b) && (of == key.Name || of == ""):
			undecodable = append(undecodable, b)
		case of == key.Name:
			out = append(out, b)
		}
	}
	return out, undecodable, nil
}

// errRequestNotStored is why a backup would be verified again without end: that it was is not
// recorded.
var errRequestNotStored = errors.New("the host cluster does not store status.verifyRequest of a ClusterRegistryBackup, so no backup can be verified again: its CustomResourceDefinition clusterregistrybackups.operator.clusterregistry.io is of an earlier release than the operator; apply the one of the operator's release")

// enter brings a backup to a phase, and records that before anything follows from it.
func enter(ctx context.Context, c client.Client, b *operatorv1alpha1.ClusterRegistryBackup, change func(*operatorv1alpha1.ClusterRegistryBackup)) error {
	before := b.DeepCopy()
	change(b)
	if apiequality.Semantic.DeepEqual(before.Status, b.Status) {
		return nil
	}
	written := b.DeepCopy()
	err := c.Status().Patch(ctx, written, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		*b = *before
		return err
	}
	b.ResourceVersion = written.ResourceVersion
	if b.Status.VerifyRequest != "" && written.Status.VerifyRequest == "" {
		return errRequestNotStored
	}
	return nil
}

// holdContent has the objects of backups whose content goes with them wait for that.
func (s *scope) holdContent(ctx context.Context) error {
	for _, b := range s.backups.all {
		held := controllerutil.ContainsFinalizer(b, operatorv1alpha1.FinalizerBackup)
		var err error
		switch {
		case b.DeletionTimestamp == nil && !held && b.Spec.DeletionPolicy == operatorv1alpha1.BackupDeletionPolicyDelete:
			err = finalize(ctx, s.Client, b, controllerutil.AddFinalizer)
		case b.DeletionTimestamp != nil && held && !backup.HasContent(b) && !underWay(b):
			err = finalize(ctx, s.Client, b, controllerutil.RemoveFinalizer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func underWay(b *operatorv1alpha1.ClusterRegistryBackup) bool {
	return b.Status.Phase == operatorv1alpha1.BackupSaving || b.Status.Phase == operatorv1alpha1.BackupVerifying
}

// finalize changes nothing of a backup but its finalizers, of which the cache has only the
// operator's own, unless someone else has changed the backup since it was read.
func finalize(ctx context.Context, c client.Client, b *operatorv1alpha1.ClusterRegistryBackup, change func(client.Object, string) bool) error {
	now := &unstructured.Unstructured{} // which no cache has
	now.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterRegistryBackup"))
	if err := c.Get(ctx, client.ObjectKeyFromObject(b), now); err != nil {
		return err
	}
	before := now.DeepCopy()
	before.SetResourceVersion(b.ResourceVersion)
	change(now, operatorv1alpha1.FinalizerBackup)
	if err := c.Patch(ctx, now, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	b.ResourceVersion = now.GetResourceVersion()
	change(b, operatorv1alpha1.FinalizerBackup)
	return nil
}

// runBackupTask takes the present task one step further.
func (s *scope) runBackupTask(ctx context.Context) error {
	t := s.backups.task
	if t != nil && t.Step == backup.Save && !underWay(t.Object) {
		// It is known what is done before it is done: whoever comes next continues with it.
		if err := enter(ctx, s.Client, t.Object, func(b *operatorv1alpha1.ClusterRegistryBackup) {
			b.Status.Lineage = t.Lineage
			backup.Encrypted(b, s.keyIDs())
			backup.Enter(b, operatorv1alpha1.BackupSaving, "", s.Now)
		}); err != nil {
			return err
		}
	}
	outcome, err := s.backupJob(ctx)
	if err != nil {
		return err
	}
	status := s.Registry.Status.Backup
	if t == nil {
		status.StoreUnreachable = nil // nobody tries to reach it
		return nil
	}
	outcome = backup.Reach(status, *t, outcome, s.Now)
	switch t.Step {
	case backup.Prune:
		return s.pruned(ctx, *t, outcome)
	case backup.Delete:
		return s.contentDeleted(ctx, *t, outcome)
	}
	return s.advanceBackup(ctx, *t, outcome)
}

// advanceBackup brings a backup to where its Job leads.
func (s *scope) advanceBackup(ctx context.Context, t backup.Task, outcome backup.Outcome) error {
	var advanced, again bool
	err := enter(ctx, s.Client, t.Object, func(b *operatorv1alpha1.ClusterRegistryBackup) {
		if t.Step == backup.Save {
			backup.Encrypted(b, s.keyIDs()) // as they were changed meanwhile
		}
		advanced, again = backup.Advance(t, outcome, s.Registry.Spec.Backup.Verify, s.Now)
		if !advanced && t.Request == "" {
			backup.Enter(b, b.Status.Phase, outcome.Message, s.Now)
		}
	})
	if err != nil {
		return err
	}
	if again {
		return s.deleteBackupJob(ctx)
	}
	if !advanced {
		return nil
	}
	if t.Request != "" {
		s.tellVerified(t.Object)
		return nil
	}
	switch status := t.Object.Status; status.Phase {
	case operatorv1alpha1.BackupCompleted:
		s.Event(corev1.EventTypeNormal, eventBackupCompleted, actionBackup, "backup %s of revision %d is at %s", t.Object.Name, status.Revision, status.Location)
	case operatorv1alpha1.BackupDamaged:
		s.Event(corev1.EventTypeWarning, eventBackupDamaged, actionBackup, "backup %s can't be used: %s", t.Object.Name, status.Message)
	case operatorv1alpha1.BackupFailed:
		s.Event(corev1.EventTypeWarning, eventBackupFailed, actionBackup, "backup %s failed: %s", t.Object.Name, status.Message)
	}
	return nil
}

// tellVerified says in an event what came of another verification.
func (s *scope) tellVerified(b *operatorv1alpha1.ClusterRegistryBackup) {
	switch status := b.Status; {
	case status.Phase == operatorv1alpha1.BackupDamaged:
		s.Event(corev1.EventTypeWarning, eventBackupDamaged, actionBackup, "backup %s can't be used: %s", b.Name, status.Message)
	case status.Message != "":
		s.Event(corev1.EventTypeWarning, eventBackupNotVerified, actionBackup, "backup %s: %s", b.Name, status.Message)
	default:
		s.Event(corev1.EventTypeNormal, eventBackupVerified, actionBackup, "backup %s was verified again", b.Name)
	}
}

// pruned deletes the objects of backups that are no longer in the store. What failed is done
// after the next backup.
func (s *scope) pruned(ctx context.Context, t backup.Task, outcome backup.Outcome) error {
	status := s.Registry.Status.Backup
	switch outcome.State {
	case backup.Running:
		return nil
	case backup.Lost:
		return s.deleteBackupJob(ctx)
	case backup.Failed, backup.Damaged:
		s.Event(corev1.EventTypeWarning, eventBackupPruneFailed, actionBackup, "old backups were not removed, the operator will retry after the next backup: %s", outcome.Message)
		status.Pruned = t.Name
		return nil
	}
	removed := outcome.Removed()
	for _, b := range s.backups.all {
		if backup.HasContent(b) && b.Status.Lineage == t.Lineage && slices.Contains(removed, b.Name) {
			if err := s.deleteBackup(ctx, b); err != nil {
				return err
			}
		}
	}
	if len(removed) > 0 {
		s.Event(corev1.EventTypeNormal, eventBackupsPruned, actionBackup, "%d backups were removed by spec.backup.retention: %s", len(removed), operand.Names(references(removed)))
	}
	status.Pruned = t.Name
	return nil
}

func references(names []string) []operatorv1alpha1.ObjectReference {
	var out []operatorv1alpha1.ObjectReference
	for _, name := range names {
		out = append(out, operatorv1alpha1.ObjectReference{Kind: "ClusterRegistryBackup", Name: name})
	}
	return out
}

// contentDeleted lets the object of a backup go that is deleted in the store, or that the
// store does not delete in time.
func (s *scope) contentDeleted(ctx context.Context, t backup.Task, outcome backup.Outcome) error {
	switch {
	case outcome.State == backup.Running:
		return nil
	case outcome.State == backup.Failed && s.Now.Sub(t.Object.DeletionTimestamp.Time) > backup.LetGo:
		s.Event(corev1.EventTypeWarning, eventBackupContentLeft, actionBackup, "the content of backup %s is left at %s: %s", t.Object.Name, t.Object.Status.Location, outcome.Message)
	case outcome.State != backup.Succeeded:
		return s.deleteBackupJob(ctx)
	}
	return finalize(ctx, s.Client, t.Object, controllerutil.RemoveFinalizer)
}

// explainPending says of those that wait for what they do. What is too many fails.
func (s *scope) explainPending(ctx context.Context) error {
	for _, b := range backup.TooMany(s.backups.all) {
		if err := enter(ctx, s.Client, b, func(b *operatorv1alpha1.ClusterRegistryBackup) {
			backup.Enter(b, operatorv1alpha1.BackupFailed, backup.TooManyMessage(), s.Now)
		}); err != nil {
			return err
		}
		s.Event(corev1.EventTypeWarning, eventBackupFailed, actionBackup, "backup %s failed: %s", b.Name, b.Status.Message)
	}
	for _, b := range s.backups.all {
		if b.Status.Phase != "" && b.Status.Phase != operatorv1alpha1.BackupPending || b.DeletionTimestamp != nil {
			continue
		}
		message := "Waiting for etcd to be complete"
		switch t := s.backups.task; {
		case !s.backups.blocked.Complete():
			message = s.backups.blocked.Message
		case t != nil && t.Object != b:
			message = fmt.Sprintf("Waiting for %s of backup %s", t.Step, t.Name)
		}
		if err := enter(ctx, s.Client, b, func(b *operatorv1alpha1.ClusterRegistryBackup) {
			backup.Enter(b, operatorv1alpha1.BackupPending, message, s.Now)
		}); err != nil {
			return err
		}
	}
	return nil
}

// schedule creates the backup that is due, unless one by the schedule is not over. Of a registry
// that is being deleted it is the last one.
func (s *scope) schedule(ctx context.Context, times schedule.Schedule) error {
	spec, status := s.Registry.Spec.Backup, s.Registry.Status.Backup
	if s.Deleting() != "" {
		return s.awaitLast(ctx)
	}
	if spec.Suspend || status.Lineage == "" || !s.backups.blocked.Complete() {
		return nil
	}
	due := backup.Due(times, *status, s.Now)
	if due.IsZero() || slices.ContainsFunc(s.backups.all, func(b *operatorv1alpha1.ClusterRegistryBackup) bool {
		return backup.Scheduled(b) && !b.Status.Phase.Ended() && (underWay(b) || b.DeletionTimestamp.IsZero())
	}) {
		return nil
	}
	for _, name := range backup.Names(s.Registry.Name, due, status.Lineage) {
		ofOther, err := false, s.Client.Create(ctx, s.newBackup(name, operatorv1alpha1.BackupScheduled))
		if apierrors.IsAlreadyExists(err) {
			ofOther, err = s.taken(ctx, name)
		}
		if err != nil {
			return fmt.Errorf("create ClusterRegistryBackup %s: %w", name, err)
		}
		if !ofOther {
			break
		}
	}
	at := metav1.NewTime(due.UTC())
	status.LastScheduledTime = &at
	return nil
}

// taken makes sure that a backup of the name that is due is one of this registry, which this
// operator has created before it was killed, or another leader. If it is not, that is a
// failure, and the next time in the schedule has another name. It reports whether that backup is
// of data from before etcd was restored or recovered.
func (s *scope) taken(ctx context.Context, name string) (ofOther bool, err error) {
	other := &operatorv1alpha1.ClusterRegistryBackup{}
	if err := s.Live.Get(ctx, s.Named(name), other); err != nil {
		return false, err
	}
	if other.Spec.RegistryRef.Name != s.Registry.Name {
		s.Registry.Status.Backup.LastFailure = &operatorv1alpha1.BackupFailure{Time: metav1.NewTime(s.Now.Truncate(time.Second)), Name: name,
			Message: fmt.Sprintf("ClusterRegistryBackup %s is in the way: it is of ClusterRegistry %s; delete it", name, other.Spec.RegistryRef.Name)}
		return false, nil
	}
	return other.Status.Lineage != "" && other.Status.Lineage != s.Registry.Status.Backup.Lineage, nil
}

// dropBackups deletes objects that have served their purpose. What the status has to have of
// them was written before.
func (s *scope) dropBackups(ctx context.Context) error {
	if s.Before.Backup == nil {
		return nil
	}
	for _, b := range backup.Obsolete(s.backups.all, *s.Before.Backup) {
		if err := s.deleteBackup(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// deleteBackup deletes the object of a backup as it was read.
func (s *scope) deleteBackup(ctx context.Context, b *operatorv1alpha1.ClusterRegistryBackup) error {
	return client.IgnoreNotFound(s.Client.Delete(ctx, b, client.Preconditions{UID: &b.UID, ResourceVersion: &b.ResourceVersion}))
}

func (s *scope) deleteBackupJob(ctx context.Context) error {
	return job.Delete(ctx, s.Objects, contract.BackupSuffix)
}

// withoutBackups ends what was begun of the backups of a registry that has no store any more.
func (s *scope) withoutBackups(ctx context.Context) error {
	s.Registry.Status.Backup = nil
	if s.ReadOnly() {
		return nil
	}
	return settle(ctx, s.Client, s.backups.all, fmt.Sprintf("ClusterRegistry %s has no spec.backup, which names the store", s.Registry.Name), s.Now, func(b *operatorv1alpha1.ClusterRegistryBackup, text string) {
		s.Event(corev1.EventTypeWarning, eventBackupContentLeft, actionBackup, "%s", text)
	})
}

// settleBackups ends the backups of a registry that is being deleted, or gone, and returns
// them. No backup in the store goes with it. What can't be read holds no deletion.
func (r *Reconciler) settleBackups(ctx context.Context, key client.ObjectKey, why string) ([]*operatorv1alpha1.ClusterRegistryBackup, error) {
	if err := r.backupKind.readable(ctx, r.Live, key.Namespace); err != nil {
		if errors.As(err, new(*unreadableError)) {
			return nil, nil
		}
		return nil, err
	}
	all, _, err := backupsOf(ctx, r.Client, key)
	if err != nil {
		return nil, err
	}
	return all, settle(ctx, r.Client, all, why, time.Now(), func(b *operatorv1alpha1.ClusterRegistryBackup, text string) {
		r.Events.Eventf(b, nil, corev1.EventTypeWarning, eventBackupContentLeft, actionBackup, "%s", text)
	})
}

// settle ends backups that can't be taken: what was begun, or scheduled, has failed; what a
// person asked for waits; and no deletion is held.
func settle(ctx context.Context, c client.Client, all []*operatorv1alpha1.ClusterRegistryBackup, why string, now time.Time, left func(*operatorv1alpha1.ClusterRegistryBackup, string)) error {
	for _, b := range all {
		if b.DeletionTimestamp != nil {
			if !controllerutil.ContainsFinalizer(b, operatorv1alpha1.FinalizerBackup) {
				continue
			}
			if backup.HasContent(b) {
				left(b, fmt.Sprintf("the content of backup %s is left at %s: %s", b.Name, b.Status.Location, why))
			}
			if err := finalize(ctx, c, b, controllerutil.RemoveFinalizer); client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		if b.Status.Phase.Ended() {
			continue
		}
		phase := operatorv1alpha1.BackupPending
		if underWay(b) || backup.Made(b) {
			phase = operatorv1alpha1.BackupFailed
		}
		if err := enter(ctx, c, b, func(b *operatorv1alpha1.ClusterRegistryBackup) { backup.Enter(b, phase, why, now) }); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
