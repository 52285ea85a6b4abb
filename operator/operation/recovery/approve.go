package recovery

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Approve begins the recovery that spec.recovery approves of a loss that was found, or says
// why it does not. It is done when it has begun, or nothing is approved.
func (d *Drive) Approve(ctx context.Context, found *operatorv1alpha1.RecoveryStatus) verdict.Verdict {
	asked := d.Registry.Spec.Recovery
	if asked == nil || d.Recovering() != nil && asked.ApprovedFor != found.ID {
		return done
	}
	approval := restore.Approval{Recovery: *asked, Lost: *found, Joining: d.Identity.Record.Joining}
	backup, v := d.approved(approval)
	halted, until := d.Halted()
	switch {
	case !v.Complete():
		return v
	case d.ReadOnly():
		return Held("nothing is recovered until %s", d.ReadOnlyUntil())
	case halted != "":
		return Held("nothing is recovered until %s", until)
	case d.Recovering().Of(*asked):
		return d.rebound(ctx, approval)
	}
	if v := Retain(ctx, d.Objects, d.Identity, approval.Recovery); !v.Complete() {
		return v
	}
	if err := d.ReadClear(ctx); err != nil {
		return verdict.Failed(fmt.Errorf("have the servers read what is stored in clear: %w", err))
	}
	if err := Begin(ctx, d.Objects, d.Identity, approval, backup); err != nil {
		return verdict.Failed(fmt.Errorf("record the recovery of etcd: %w", err))
	}
	// What was found to be stored may not be what the copy has.
	d.Forget()
	d.Event(corev1.EventTypeNormal, operatorv1alpha1.ReasonRecovering, operatorv1alpha1.ConditionEtcdReady, "the recovery from the lost quorum %s is approved, with the data of %s: all servers and etcd members are stopped first", found.ID, Copy(d.Recovering()))
	return done
}

// approved is done when what is approved can be done. Of a backup, it returns what is to be
// restored.
func (d *Drive) approved(approval restore.Approval) (*etcd.Restored, verdict.Verdict) {
	if err := approval.Refuse(); err != nil {
		return nil, Held("%s", err)
	}
	if approval.From != operatorv1alpha1.RecoverFromBackup || d.Recovering().Of(approval.Recovery) {
		return nil, done
	}
	if v := d.Backup.Verdict; !v.Complete() {
		return nil, v
	}
	if d.Backup.Restored == nil {
		return nil, Held("the backup is looked up next").In(verdict.AtOnce)
	}
	return d.Backup.Restored, done
}

// rebound records how much may be lost, where that was changed while the recovery is under way.
func (d *Drive) rebound(ctx context.Context, approval restore.Approval) verdict.Verdict {
	recovered := d.Recovering()
	if least := approval.Least(); recovered.From == operatorv1alpha1.RecoverFromMember && least != recovered.Revision {
		if err := Bound(ctx, d.Identity, least); err != nil {
			return verdict.Failed(fmt.Errorf("record how much may be lost: %w", err))
		}
	}
	return done
}
