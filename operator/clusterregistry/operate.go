package clusterregistry

import (
	"context"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/defragmentation"
	"github.com/clusterregistry/operator/operator/operation/keychange"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/operation/recovery"
	"github.com/clusterregistry/operator/operator/operation/rotation"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// operate takes the operation beside an upgrade that is under way one step further, or begins
// the first one that is due, in this order.
func (r *Reconciler) operate(ctx context.Context, s *scope) verdict.Verdict {
	free := r.defragmentation(s)
	all := []operation.Operation{r.rotation(s).Operation(), r.keyChange(s).Operation()}
	if free.Ours() {
		all = append(all, free.Operation())
	}
	v := s.driver().All(ctx, all)
	s.note(free.Notes())
	return v
}

// upgrade is what is done about the upgrade that is under way.
func (r *Reconciler) upgrade(s *scope) upgrade.Drive {
	return upgrade.Drive{Pass: s.Pass, Upgrade: s.upgrade, Access: r.access(s), Notes: &r.notes, Save: s.saving().SaveBefore}
}

// advance takes the upgrade one step further.
func (r *Reconciler) advance(ctx context.Context, s *scope) verdict.Verdict {
	v := r.upgrade(s).Step(ctx)
	if s.Registry.Status.Operation == nil {
		s.upgrade = nil
	}
	return v
}

// rotation is what is done about the CAs of the registry's own.
func (r *Reconciler) rotation(s *scope) rotation.Drive {
	return rotation.Drive{Pass: s.Pass, Access: r.access(s)}
}

// keyChange is what is done about the keys to encrypt with.
func (r *Reconciler) keyChange(s *scope) keychange.Drive {
	return keychange.Drive{Pass: s.Pass, Access: r.access(s), Input: s.input(r.Environment), Backups: s.backups.All, Unread: s.backups.Unread, Walks: &r.keyWalks}
}

// defragmentation is what is done about the free pages of etcd.
func (r *Reconciler) defragmentation(s *scope) *defragmentation.Drive {
	return &defragmentation.Drive{Pass: s.Pass, Revisions: &r.revisions}
}

// giveWay ends an operation for which an etcd that is full would wait, or says that it can't be.
func (r *Reconciler) giveWay(s *scope) {
	ended, besides := r.defragmentation(s).GiveWay()
	if ended {
		s.upgrade = nil
	}
	s.since.full = besides
}

// members is what is done about etcd's members.
func (r *Reconciler) members(s *scope) membership.Drive {
	return membership.Drive{Pass: s.Pass, Comparisons: &r.comparisons, TakeSnapshot: s.saving().SaveBefore}
}

// changeMembers takes a change of the members of the registry's own etcd one step further,
// or begins one. It does nothing as long as etcd was not observed.
func (r *Reconciler) changeMembers(ctx context.Context, s *scope) verdict.Verdict {
	members := r.members(s)
	if !members.Changeable() {
		return done
	}
	if s.Members.Acted {
		return done.In(verdict.AtOnce) // what was observed is no longer so
	}
	change := members.Change()
	if v := s.recovered(r.recovery(s).Quorum(ctx, change)); !v.Complete() {
		return v
	}
	found := members.Step(ctx, change)
	s.since.lost = found.Lost
	return found.Verdict
}

// recovery is what is done about an etcd that has lost its quorum, or went back.
func (r *Reconciler) recovery(s *scope) *recovery.Drive {
	return &recovery.Drive{Pass: s.Pass, Changes: r.members(s), Revisions: &r.revisions, Backups: s.backups.All,
		Backup: s.restore.Recovery, ReadClear: r.keyChange(s).ReadClear, Forget: func() {
			r.notes.Forget(s.Registry.UID)
			r.keyWalks.Forget(s.Registry.UID)
		}}
}

// recover takes the recovery that is under way one step further.
func (r *Reconciler) recover(ctx context.Context, s *scope) verdict.Verdict {
	return s.recovered(r.recovery(s).Step(ctx))
}

// recovered keeps what was found of a lost quorum, and returns what its recovery waits for.
func (s *scope) recovered(found recovery.Found) verdict.Verdict {
	s.since.quorum = found.Etcd
	return found.Verdict
}

// noteQuorumFirst looks for a lost quorum of a registry that was not complete yet, as one that
// takes over retained data: its etcd may have lost its quorum before.
func (r *Reconciler) noteQuorumFirst(ctx context.Context, s *scope) {
	if !r.members(s).Changeable() || s.Members.Acted {
		return
	}
	if v := s.recovered(r.recovery(s).Quorum(ctx, r.members(s).Change())); !v.Complete() {
		s.found[operatorv1alpha1.ConditionProgressing] = v
	}
}

// besides returns the verdict of an upgrade beside which a member is replaced.
func (s *scope) besides(members, other verdict.Verdict) verdict.Verdict {
	if members.After > 0 && (other.After == 0 || members.After < other.After) {
		other = other.In(members.After)
	}
	if members.Complete() || other.Complete() {
		return other
	}
	if other.Message += "; besides, " + members.Message; other.Err == nil {
		other.Err = members.Err
	}
	return other
}

// driver drives the operations of the registry.
func (s *scope) driver() operation.Run { return operation.Run{Pass: s.Pass} }

// note keeps what a person should know of parts that are ready.
func (s *scope) note(notes []pass.Note) { s.since.notes = append(s.since.notes, notes...) }
