package recovery

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Quorum says that etcd has lost its quorum for good, and what is left of it. What it has
// said stays until a majority answers again: that it is not certain at the moment is no news.
// The verdict is not done when a recovery has begun.
func (d *Drive) Quorum(ctx context.Context, change *membership.Change) Found {
	status, name := &d.Registry.Status, client.ObjectKeyFromObject(d.Registry).String()
	if d.Members.State.ListErr == nil {
		d.Revisions.Note(name, etcd.Seen{Revision: d.Members.State.Revision(), Time: d.Now})
		status.Recovery = nil
		return Found{}
	}
	members, err := change.QuorumLost(ctx)
	if err != nil {
		return Found{Verdict: verdict.Failed(fmt.Errorf("find out whether etcd has lost its quorum: %w", err))}
	}
	if members == nil {
		return Found{}
	}
	cluster := d.Identity.Record.ClusterID
	before := status.Recovery
	if before == nil || !strings.HasPrefix(before.ID, cluster+"-") {
		before = &operatorv1alpha1.RecoveryStatus{ID: cluster + "-" + string(uuid.NewUUID())[:8], LostTime: metav1.Time{Time: d.Now}}
	}
	found := assess(before, members, d.newestVerified(), d.Revisions.Newest(name))
	known := status.Recovery != nil && status.Recovery.ID == found.ID // else no one can have approved it
	status.Recovery = found
	v := verdict.Waiting(operatorv1alpha1.ReasonQuorumLost, "%s", quorumLost(found)).In(verdict.Backstop)
	if known {
		held := d.Approve(ctx, found)
		switch {
		case d.Recovering() != nil:
			v := verdict.Waiting(operatorv1alpha1.ReasonRecovering, "etcd is recovered with the data of %s: all servers and etcd members are stopped first", Copy(d.Recovering())).In(verdict.AtOnce)
			found.Phase, found.Message = d.Recovering().Phase, v.Message
			return Found{Verdict: v, Etcd: &v}
		case !held.Complete():
			found.Message = held.Message
			v.Message += "; spec.recovery does nothing yet: " + held.Message
			v = v.In(held.After)
		}
	}
	if before, _ := d.Verdict(operatorv1alpha1.ConditionEtcdReady); before.State == verdict.ReadOnly {
		v = v.AsReadOnly()
	}
	return Found{Etcd: &v}
}

// assess says what is left of an etcd that has lost its quorum, and how much each copy of the
// data lacks, from what was said of the same loss before. What a member has said once stays
// true: without a quorum, nothing is added to its data.
func assess(before *operatorv1alpha1.RecoveryStatus, members []operatorv1alpha1.RecoveryMember, backup *operatorv1alpha1.RecoveryBackup, seen int64) *operatorv1alpha1.RecoveryStatus {
	out := &operatorv1alpha1.RecoveryStatus{ID: before.ID, LostTime: before.LostTime, LastRevision: max(before.LastRevision, seen), Members: members, Backup: backup}
	for i := range members {
		m := &members[i]
		for _, said := range before.Members {
			if said.Name == m.Name && !m.DataGone && m.Revision == 0 && said.Revision > 0 {
				m.Revision, m.Message = said.Revision, "it had its data when it answered last"
			}
			m.Corrupt = m.Corrupt || said.Name == m.Name && said.Corrupt && !m.DataGone
		}
		out.LastRevision = max(out.LastRevision, m.Revision)
	}
	if backup != nil {
		out.LastRevision = max(out.LastRevision, backup.Revision)
		backup.RevisionsLost = lacks(backup.Revision, out.LastRevision)
	}
	for i := range members {
		members[i].RevisionsLost = lacks(members[i].Revision, out.LastRevision)
	}
	return out
}

// lacks returns how many revisions a copy lacks, zero when its own is not known.
func lacks(revision, last int64) int64 {
	if revision == 0 {
		return 0
	}
	return last - revision
}

// quorumLost says what is left, for a person.
func quorumLost(found *operatorv1alpha1.RecoveryStatus) string {
	text := lossOf(found.Members)
	if b := found.Backup; b != nil {
		text += fmt.Sprintf("the newest verified backup is %s, taken at %s, up to revision %d%s", b.Name, b.Time.UTC().Format(time.RFC3339), b.Revision, lost(b.RevisionsLost))
	} else {
		text += "there is no verified backup"
	}
	if found.LastRevision > 0 {
		text += fmt.Sprintf(". The newest revision that is known is %d, and clients may have been answered newer ones", found.LastRevision)
	}
	return text + ". Keep all volumes and delete no claim: a person decides with which copy etcd continues, in spec.recovery (kubectl registry recover plan says how; this loss is " + found.ID + ")"
}

// lossOf says what is gone of the members' data, and what is left of it.
func lossOf(members []operatorv1alpha1.RecoveryMember) string {
	var gone, left []string
	for _, m := range members {
		switch {
		case m.Corrupt:
			left = append(left, m.Name+", which may be wrong by etcd's alarm CORRUPT, and is not used")
		case m.DataGone:
			gone = append(gone, fmt.Sprintf("%s: %s", m.Name, m.Message))
		case m.Revision > 0:
			left = append(left, fmt.Sprintf("%s up to revision %d%s", m.Name, m.Revision, lost(m.RevisionsLost)))
		default:
			left = append(left, fmt.Sprintf("%s up to a revision that is not known (%s)", m.Name, m.Message))
		}
	}
	if len(members) == 1 {
		return fmt.Sprintf("the data of etcd's only member is gone (%s), and no other member has it. If its volume can be brought back, nothing is lost; otherwise etcd can continue with a backup: ", strings.Join(gone, "; "))
	}
	return fmt.Sprintf("etcd has lost its quorum for good: the data of %d of %d members is gone (%s), and the others can't agree on anything any more. Left is the data of %s; ", len(gone), len(members), strings.Join(gone, "; "), cmp.Or(strings.Join(left, " and "), "no member"))
}

// lost says how many revisions a copy of the data lacks.
func lost(revisions int64) string {
	if revisions == 0 {
		return ""
	}
	return ", which lacks " + restore.Known(revisions)
}

// newestVerified returns the backup with the highest revision, of the data that there was,
// that was verified and is still there; nil when there is none.
func (d *Drive) newestVerified() *operatorv1alpha1.RecoveryBackup {
	var newest *operatorv1alpha1.RecoveryBackup
	for _, b := range d.Backups {
		status := b.Status
		verified := status.Phase == operatorv1alpha1.BackupCompleted && status.VerifiedTime != nil && status.TakenTime != nil && b.DeletionTimestamp == nil
		if !verified || status.Lineage == "" || status.Lineage != d.Identity.Record.Lineage || newest != nil && newest.Revision >= status.Revision {
			continue
		}
		newest = &operatorv1alpha1.RecoveryBackup{Name: b.Name, Time: *status.TakenTime, Revision: status.Revision, Location: status.Location}
	}
	return newest
}
