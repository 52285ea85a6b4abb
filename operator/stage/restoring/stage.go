// Package restoring is the stage that comes before all others where the data of a registry is to
// come from a backup: a new registry begins with one, or a recovery is approved with one. It finds
// out which backup that is, and whether it can be restored, before anything is made or stopped.
// What is refused is decided by operator/restore.
package restoring

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
	"github.com/clusterregistry/operator/operator/operation/recovery"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/store"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// Stage is the stage in one reconcile.
type Stage struct {
	pass.Pass
	// Watches reports whether the operator may read the registries of a namespace.
	Watches func(namespace string) bool
	// Releases are those that can run.
	Releases []version.Release
	// Found is what is known so far.
	Found Found
}

// Found is what is known of the backup that the registry's etcd is to begin with, or that a
// recovery is approved with.
type Found struct {
	// Begin makes the first record, nil as long as none is to be made.
	Begin func(*etcd.Record) *etcd.Record
	// Recovery is the backup that a recovery from a lost quorum is approved with.
	Recovery recovery.Backup

	// asked is true where a recovery is approved with a backup, which is looked up.
	asked bool
	// source is where the backup is, nil when nothing is looked up or restored.
	source *source
	// pending is what is recorded, once it is known which backup it is.
	pending *etcd.Restored
	// lineage is the ID of the data that begins with it.
	lineage string
}

// done is the verdict where there is nothing to say.
var done verdict.Verdict

// source is a backup that was named, in a way of which the operator has to find out
// which one it is.
type source struct {
	Store         operatorv1alpha1.BackupStore
	Lineage, Name string
	Before        string
	// backup is the ClusterRegistryBackup that was named, sha256 its checksum, and keys those
	// that it may need.
	backup, sha256 string
	keys           []string
}

// task identifies the source, on the Job that looks it up.
func (s source) task() string { return "show " + restore.ID(s) }

// Rendered returns what is to be rendered, nil for nothing.
func (f Found) Rendered() *render.Restore {
	switch {
	case f.pending != nil:
		return &render.Restore{Store: *f.pending.Store, Source: f.pending.Lineage, Name: f.pending.Report.Name, SHA256: f.pending.Report.SHA256, Lineage: f.lineage}
	case f.source != nil:
		return &render.Restore{Store: f.source.Store, Source: f.source.Lineage, Name: f.source.Name, Before: f.source.Before, Task: f.source.task()}
	}
	return nil
}

// Observe finds out whether the registry is to begin with a backup and where that is. It is done
// where there is nothing to restore, or nothing against it.
func (s *Stage) Observe(ctx context.Context) (Found, verdict.Verdict) {
	v := s.observe(ctx)
	return s.Found, v
}

func (s *Stage) observe(ctx context.Context) verdict.Verdict {
	record, from := s.Identity.Record, s.Registry.Spec.RestoreFrom
	Report(s.Pass)
	switch {
	case s.Identity.Err != nil:
		return done // the stage of etcd says so
	case s.Recovering() != nil && s.Before.Recovered != nil && s.Before.Recovered.ID == s.Recovering().ID:
		return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "ConfigMap %s, the record of etcd's identity, says that the recovery %s is under way, and that was complete at %s (status.recovered): the record is older than etcd, as after it was restored from a backup; nothing is changed until a newer one is brought back",
			s.Name(contract.IdentitySuffix), s.Recovering().ID, s.Before.Recovered.CompletionTime.UTC().Format(time.RFC3339)).AsReadOnly()
	case s.Recovering() != nil:
		if record.Restored.Pending() {
			s.Found.pending, s.Found.lineage = record.Restored, record.Lineage
		}
		return done
	case record != nil && record.Restored.Pending() && (s.Installed() || servedRestored(s.Pass)):
		return s.recordIsOlder()
	case record != nil && record.Restored.Pending():
		s.Found.pending, s.Found.lineage = record.Restored, record.Lineage
	case s.Installed(), servedRestored(s.Pass):
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
	source, v := s.sourceOf(ctx, *from)
	if !v.Complete() {
		return v
	}
	s.Found.source = &source
	if _, v := store.Needs(ctx, s.Objects, source.Store, "spec.restoreFrom", "no backup can be restored"); !v.Complete() {
		v.Reason = operatorv1alpha1.ReasonRestorePending
		return v
	}
	return done
}

// servedRestored reports whether etcd has served what this registry has restored, as its status
// says: what clients have written since must not be restored over.
func servedRestored(p pass.Pass) bool {
	return p.Before.Restored != nil && p.Before.Restored.CompletionTime != nil
}

// recordIsOlder is the verdict on a record that says that a restore is under way, of an etcd that
// has served since: on an empty volume, what it says would take away what was written since.
func (s *Stage) recordIsOlder() verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "ConfigMap %s, the record of etcd's identity, says that a restore is under way, and etcd has served since: the record is older than etcd, as after it was restored from a backup; nothing is changed until a newer one is brought back, or, if etcd's volumes have their data, its key %s is removed; if that data is lost, create another ClusterRegistry with a newer backup",
		s.Name(contract.IdentitySuffix), contract.RecordRestore).AsReadOnly()
}

// refused is the verdict of what a person has to change.
func refused(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(operatorv1alpha1.ReasonRestoreRefused, "%s; nothing is made until then", fmt.Sprintf(format, args...)).In(verdict.Backstop)
}

// hasData says what to do about data that an earlier registry has left.
func (s *Stage) hasData(what string) string {
	return fmt.Sprintf("there is data of an earlier ClusterRegistry of this name (%s), which a backup would replace: to take that data over, delete this ClusterRegistry, with which that data does not go, and create it again without spec.restoreFrom; to restore beside it, use another name or namespace; to give that data up, delete ConfigMap %s and the PersistentVolumeClaims data-%s-N, all that there are",
		what, s.Name(contract.IdentitySuffix), s.Name(contract.EtcdSuffix))
}

// InTheWay finds out what an earlier registry of the name has left that a backup would replace.
// It is not this registry's: whatever its deletionPolicy, it does not go with it.
func InTheWay(ctx context.Context, p pass.Pass) (string, error) {
	record, from := p.Identity.Record, p.Registry.Spec.RestoreFrom
	switch {
	case from == nil, p.Installed(), servedRestored(p):
		return "", nil
	case record == nil && (p.Before.Restored != nil || p.Before.Etcd.ClusterID != ""):
		return "", nil // the claims are of this one, which has lost its record
	case record != nil && record.Restored != nil && record.Restored.From == restore.ID(*from):
		return "", nil
	}
	if unknown := p.Identity.Err != nil; record != nil || unknown {
		return "ConfigMap " + p.Name(contract.IdentitySuffix), nil //nolint:nilerr // it is kept, and the stage of etcd says so
	}
	claim, err := claimInTheWay(ctx, p)
	if claim == "" {
		return "", err
	}
	return "PersistentVolumeClaim " + claim, nil
}

// mostOrdinals is more than any etcd of a registry has members.
const mostOrdinals = 9

// claimInTheWay returns the name of a claim that an earlier registry of the name has left,
// empty when there is none: of any size, whatever this one asks for.
func claimInTheWay(ctx context.Context, p pass.Pass) (string, error) {
	for ordinal := range mostOrdinals {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Name = contract.EtcdMemberClaim(contract.EtcdMember(p.Registry.Name, ordinal))
		err := p.Live.Get(ctx, p.Named(claim.Name), claim)
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
func (s *Stage) beginWith(report contract.BackupReport) {
	source, member := s.Found.source, contract.EtcdMember(s.Registry.Name, 0)
	restored := etcd.Restored{From: restore.ID(*s.Registry.Spec.RestoreFrom), Backup: source.backup, Store: &source.Store, Lineage: source.Lineage, Report: report}
	peer := render.EtcdMembers(s.Registry, []string{member})[0].PeerURL()
	keys := s.Keys.Desired
	s.Found.Begin = func(first *etcd.Record) *etcd.Record {
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

// Report writes to the status what is recorded of a restore, but for one of an earlier
// registry that is in the way of another.
func Report(p pass.Pass) {
	if p.Identity.Record == nil || p.Identity.Record.Restored == nil || p.InTheWay != "" {
		return
	}
	restored := p.Identity.Record.Restored
	report := restored.Report
	status := &operatorv1alpha1.RestoredStatus{Backup: restored.Backup, Location: report.Location, Revision: report.Revision, Release: report.Release, Lineage: p.Identity.Record.Lineage, TakenTime: metav1.NewTime(report.Time)}
	if report.VerifiedTime != nil {
		status.VerifiedTime = new(metav1.NewTime(*report.VerifiedTime))
	}
	if restored.Completed != nil {
		status.CompletionTime = new(metav1.NewTime(*restored.Completed))
	}
	p.Registry.Status.Restored = status
}

// ReportServed reports that etcd serves the restored data, once that was recorded.
func ReportServed(p pass.Pass) {
	Report(p)
	if now := p.Registry.Status.Restored; now != nil && now.CompletionTime != nil && !servedRestored(p) {
		p.Event(corev1.EventTypeNormal, "Restored", operatorv1alpha1.ConditionEtcdReady, "etcd serves what was restored from %s, of revision %d", now.Location, now.Revision)
		if over := restore.PassedOver(p.Identity.Record.Restored.Report); over != "" {
			p.Event(corev1.EventTypeWarning, "BackupsPassedOver", operatorv1alpha1.ConditionEtcdReady, "%s", over)
		}
	}
}

// Growing says that an etcd that was restored or recovered has not yet as many members as the
// spec asks for, nothing when it has, or an operation says so: clients are served before that,
// and the registry is not ready.
func Growing(p pass.Pass) string {
	record, asked := p.Identity.Record, p.Registry.Spec.Etcd.Replicas
	if record == nil || record.Restored == nil && record.Recovered == nil || len(record.Members) >= int(asked) || p.Registry.Status.Operation != nil {
		return ""
	}
	return fmt.Sprintf("etcd grows from %d to %d members next", len(record.Members), asked)
}
