package clusterregistry

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/store"
	"github.com/clusterregistry/operator/operator/verdict"
)

// restoration is the backup that the registry's etcd is to begin with.
type restoration struct {
	// source is where it is, nil when nothing is looked up or restored.
	source *restoreSource
	// pending is what is recorded, once it is known which backup it is.
	pending *etcd.Restored
	// lineage is the ID of the data that begins with it.
	lineage string
	// begin makes the first record, nil as long as none is to be made.
	begin func(*etcd.Record) *etcd.Record
	// recovery is the backup that a recovery from a lost quorum is approved with.
	recovery recoveryLookUp
}

// restoreSource is a backup that was named, in a way of which the operator has to find out
// which one it is.
type restoreSource struct {
	Store         operatorv1alpha1.BackupStore
	Lineage, Name string
	Before        string
	// backup is the ClusterRegistryBackup that was named, sha256 its checksum, and keys those
	// that it may need.
	backup, sha256 string
	keys           []string
}

// task identifies the source, on the Job that looks it up.
func (s restoreSource) task() string { return "show " + restore.ID(s) }

// rendered returns what is to be rendered, nil for nothing.
func (r restoration) rendered() *render.Restore {
	switch {
	case r.pending != nil:
		return &render.Restore{Store: *r.pending.Store, Source: r.pending.Lineage, Name: r.pending.Report.Name, SHA256: r.pending.Report.SHA256, Lineage: r.lineage}
	case r.source != nil:
		return &render.Restore{Store: r.source.Store, Source: r.source.Lineage, Name: r.source.Name, Before: r.source.Before, Task: r.source.task()}
	}
	return nil
}

// observeRestore finds out whether the registry is to begin with a backup and where that is.
// It is done where there is nothing to restore, or nothing against it.
func (r *Reconciler) observeRestore(ctx context.Context, s *scope) verdict.Verdict {
	record, from := s.Identity.Record, s.Registry.Spec.RestoreFrom
	s.reportRestored()
	switch {
	case s.Identity.Err != nil:
		return done // the stage of etcd says so
	case s.Recovering() != nil && s.Before.Recovered != nil && s.Before.Recovered.ID == s.Recovering().ID:
		return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "ConfigMap %s, the record of etcd's identity, says that the recovery %s is under way, and that was complete at %s (status.recovered): the record is older than etcd, as after it was restored from a backup; nothing is changed until a newer one is brought back",
			s.Name(contract.IdentitySuffix), s.Recovering().ID, s.Before.Recovered.CompletionTime.UTC().Format(time.RFC3339)).AsReadOnly()
	case s.Recovering() != nil:
		if record.Restored.Pending() {
			s.restore.pending, s.restore.lineage = record.Restored, record.Lineage
		}
		return done
	case record != nil && record.Restored.Pending() && (s.Installed() || s.servedRestored()):
		return s.recordIsOlder()
	case record != nil && record.Restored.Pending():
		s.restore.pending, s.restore.lineage = record.Restored, record.Lineage
	case s.Installed(), s.servedRestored():
		return done
	case record == nil && s.Before.Restored != nil:
		return refused("the record of the restore that is under way is gone: bring ConfigMap %s back, as from a backup; or set spec.deletionPolicy to Delete, delete this ClusterRegistry and create it again, which begins the restore again: no client has written to it", s.Name(contract.IdentitySuffix))
	}
	switch {
	case from == nil: // it was begun for a registry that was deleted since
		return done
	case record != nil && record.Restored != nil && record.Restored.From == restore.ID(*from):
		return done // it is what was asked for
	case s.Registry.Spec.Etcd.External != nil:
		return refused("the operator does not restore an external etcd: restore it with the tools that it is run with, and remove spec.restoreFrom")
	case s.InTheWay != "":
		return refused("%s", s.hasData(s.InTheWay))
	case s.Before.Etcd.ClusterID != "":
		return done // its record is lost: its data is not
	}
	if s.Keys.Desired == nil && s.Registry.Spec.Server.Encryption != nil {
		return verdict.Waiting(s.Keys.Held.Reason, "nothing is restored before it is known which keys the servers have: %s", s.Keys.Held.Message).In(verdict.Backstop)
	}
	source, v := r.restoreSource(ctx, s, *from)
	if !v.Complete() {
		return v
	}
	s.restore.source = &source
	if _, v := store.Needs(ctx, s.Objects, source.Store, "spec.restoreFrom", "no backup can be restored"); !v.Complete() {
		v.Reason = operatorv1alpha1.ReasonRestorePending
		return v
	}
	return done
}

// servedRestored reports whether etcd has served what this registry has restored, as its status
// says: what clients have written since must not be restored over.
func (s *scope) servedRestored() bool {
	return s.Before.Restored != nil && s.Before.Restored.CompletionTime != nil
}

// recordIsOlder is the verdict on a record that says that a restore is under way, of an etcd that
// has served since: on an empty volume, what it says would take away what was written since.
func (s *scope) recordIsOlder() verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "ConfigMap %s, the record of etcd's identity, says that a restore is under way, and etcd has served since: the record is older than etcd, as after it was restored from a backup; nothing is changed until a newer one is brought back, or, if etcd's volumes have their data, its key %s is removed; if that data is lost, create another ClusterRegistry with a newer backup",
		s.Name(contract.IdentitySuffix), contract.RecordRestore).AsReadOnly()
}

// refused is the verdict of what a person has to change.
func refused(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonRestoreRefused, "%s; nothing is made until then", fmt.Sprintf(format, args...)).In(verdict.Backstop)
}

// hasData says what to do about data that an earlier registry has left.
func (s *scope) hasData(what string) string {
	return fmt.Sprintf("there is data of an earlier ClusterRegistry of this name (%s), which a backup would replace: to take that data over, delete this ClusterRegistry, with which that data does not go, and create it again without spec.restoreFrom; to restore beside it, use another name or namespace; to give that data up, delete ConfigMap %s and the PersistentVolumeClaims data-%s-N, all that there are",
		what, s.Name(contract.IdentitySuffix), s.Name(contract.EtcdSuffix))
}

// readInTheWay finds out what an earlier registry of the name has left that a backup would
// replace. It is not this registry's: whatever its deletionPolicy, it does not go with it.
func (s *scope) readInTheWay(ctx context.Context) error {
	record, from := s.Identity.Record, s.Registry.Spec.RestoreFrom
	switch {
	case from == nil, s.Installed(), s.servedRestored():
		return nil
	case record == nil && (s.Before.Restored != nil || s.Before.Etcd.ClusterID != ""):
		return nil // the claims are of this one, which has lost its record
	case record != nil && record.Restored != nil && record.Restored.From == restore.ID(*from):
		return nil
	}
	if unknown := s.Identity.Err != nil; record != nil || unknown {
		s.InTheWay = "ConfigMap " + s.Name(contract.IdentitySuffix)
		return nil //nolint:nilerr // it is kept, and the stage of etcd says so
	}
	claim, err := s.claimInTheWay(ctx)
	if claim != "" {
		s.InTheWay = "PersistentVolumeClaim " + claim
	}
	return err
}

// mostOrdinals is more than any etcd of a registry has members.
const mostOrdinals = 9

// claimInTheWay returns the name of a claim that an earlier registry of the name has left,
// empty when there is none: of any size, whatever this one asks for.
func (s *scope) claimInTheWay(ctx context.Context) (string, error) {
	for ordinal := range mostOrdinals {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Name = contract.EtcdMemberClaim(contract.EtcdMember(s.Registry.Name, ordinal))
		err := s.Live.Get(ctx, s.Named(claim.Name), claim)
		if err == nil {
			return claim.Name, nil
		}
		if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("find out whether an earlier registry has left data: %w", err)
		}
	}
	return "", nil
}

// pending is the verdict of what the operator looks for again.
func pending(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonRestorePending, format, args...).In(verdict.Backstop)
}

// beginWith has the first record of the registry be that of an etcd which begins with a
// backup. What is recorded there decides from then on, whatever becomes of the spec, the
// object of the backup or the registry that it is of.
func (s *scope) beginWith(report contract.BackupReport) {
	source, member := s.restore.source, contract.EtcdMember(s.Registry.Name, 0)
	restored := etcd.Restored{From: restore.ID(*s.Registry.Spec.RestoreFrom), Backup: source.backup, Store: &source.Store, Lineage: source.Lineage, Report: report}
	peer := render.EtcdMembers(s.Registry, []string{member})[0].PeerURL()
	keys := s.Keys.Desired
	s.restore.begin = func(first *etcd.Record) *etcd.Record {
		record := etcd.RestoredRecord(*first, member, peer, string(uuid.NewUUID()), restored)
		if keyring.Rendered(keys) == nil {
			return record
		}
		// The backup may have clusters that were stored in clear.
		if _, has := keys.Find(encryption.Identity.ID()); !has {
			keys = append(keys[:len(keys):len(keys)], encryption.Identity)
		}
		return keyring.Record(*record, keys)
	}
	if err := restore.Unverified(report); err != nil {
		s.Event(corev1.EventTypeWarning, "RestoringUnverified", operatorv1alpha1.ConditionEtcdReady, "%s", err)
	}
	if over := restore.PassedOver(report); over != "" {
		s.Event(corev1.EventTypeWarning, "BackupsPassedOver", operatorv1alpha1.ConditionEtcdReady, "%s", over)
	}
}

// reportRestored writes to the status what is recorded of a restore, but for one of an earlier
// registry that is in the way of another.
func (s *scope) reportRestored() {
	if s.Identity.Record == nil || s.Identity.Record.Restored == nil || s.InTheWay != "" {
		return
	}
	restored := s.Identity.Record.Restored
	report := restored.Report
	status := &operatorv1alpha1.RestoredStatus{Backup: restored.Backup, Location: report.Location, Revision: report.Revision, Release: report.Release, Lineage: s.Identity.Record.Lineage, TakenTime: metav1.NewTime(report.Time)}
	if report.VerifiedTime != nil {
		status.VerifiedTime = new(metav1.NewTime(*report.VerifiedTime))
	}
	if restored.Completed != nil {
		status.CompletionTime = new(metav1.NewTime(*restored.Completed))
	}
	s.Registry.Status.Restored = status
}

// noteRestored reports that etcd serves the restored data, once that was recorded.
func (s *scope) noteRestored() {
	s.reportRestored()
	if now := s.Registry.Status.Restored; now != nil && now.CompletionTime != nil && !s.servedRestored() {
		s.Event(corev1.EventTypeNormal, "Restored", operatorv1alpha1.ConditionEtcdReady, "etcd serves what was restored from %s, of revision %d", now.Location, now.Revision)
		if over := restore.PassedOver(s.Identity.Record.Restored.Report); over != "" {
			s.Event(corev1.EventTypeWarning, "BackupsPassedOver", operatorv1alpha1.ConditionEtcdReady, "%s", over)
		}
	}
}

// growing says that an etcd that was restored or recovered has not yet as many members as the spec asks for, nothing
// when it has, or an operation says so: clients are served before that, and the registry is
// not ready.
func (s *scope) growing() string {
	record, asked := s.Identity.Record, s.Registry.Spec.Etcd.Replicas
	if record == nil || record.Restored == nil && record.Recovered == nil || len(record.Members) >= int(asked) || s.Registry.Status.Operation != nil {
		return ""
	}
	return fmt.Sprintf("etcd grows from %d to %d members next", len(record.Members), asked)
}
