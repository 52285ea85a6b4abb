package members

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/verdict"
)

// etcdTrouble returns what etcd itself says is wrong with it, although its members
// answer: an alarm that is raised, or members that are not recorded. No member is replaced
// meanwhile, unless that makes room.
func (s *Stage) etcdTrouble() verdict.Verdict {
	if alarm, raised := s.found.State.Raised(); raised {
		by := s.found.State.RaisedBy(alarm.Type)
		switch alarm.Type {
		case etcd.AlarmNoSpace:
			return s.noSpace(by)
		case etcd.AlarmCorrupt:
			advice := "If it is one member of several and a majority of the members agrees without it, the operator replaces it now (Progressing says how far that is); otherwise restore a snapshot"
			if s.Registry.Spec.Etcd.External != nil {
				advice = "If the alarm names one member of several, remove that one, disarm the alarm (etcdctl alarm disarm) and add it again; otherwise restore a snapshot"
			}
			return verdict.Waiting(operatorv1alpha1.ReasonCorrupt, "etcd refuses every write, and its reads may be wrong: its alarm CORRUPT is raised by %s, whose data differs from the others'. Keep all volumes. %s", by, advice)
		}
		return verdict.Waiting(operatorv1alpha1.ReasonMembersNotReady, "etcd's alarm %s is raised by %s", alarm.Type, by)
	}
	record := s.Identity.Record
	if record == nil || record.Joining != "" || record.Leaving != "" {
		return done // the list changes before the record, or the other way round
	}
	if err := s.found.State.Differs(record.Identity); err != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonMembershipDiffers, "etcd's list of members differs from the recorded one, and every member in it counts toward the quorum: %s. Complete the change, or undo it: etcdctl member list, etcdctl member remove ID", err)
	}
	return done
}

// noSpace says what a person can do when members are full.
func (s *Stage) noSpace(by string) verdict.Verdict {
	if s.Registry.Spec.Etcd.External != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonNoSpace, "etcd refuses every write but deletions: its alarm NOSPACE is raised by %s. Make room (remove clusters, compact, defragment each member), then disarm the alarm (etcdctl alarm disarm)", by)
	}
	v := verdict.Waiting(operatorv1alpha1.ReasonNoSpace, "etcd refuses every write but deletions: its alarm NOSPACE is raised by %s. The operator compacts etcd's history, defragments its members, and disarms the alarm when the file of each is below 90%% of its quota. If that is not enough, raise spec.etcd.storage.size, or remove clusters", by)
	if limited := s.Volumes.QuotaDiffers(s.Registry); limited != "" {
		v.Message += "; besides: " + limited
	}
	return v
}

// makeRoom does what the operator can to end NOSPACE: the alarm is disarmed once all members
// have room, and until then an outdated member is replaced by one with a larger quota, which
// reaches members in no other way.
func (s *Stage) makeRoom(ctx context.Context, v verdict.Verdict, next roll) verdict.Verdict {
	if err := next.state.Full(next.recorded); err != nil {
		if name, _ := next.state.Next(next.outdated); next.grows(name) {
			rolled := s.rollMember(ctx, next)
			v.Message += "; the quota grows: " + rolled.Message
			v.After, v.Err = rolled.After, rolled.Err
			return v
		}
		v.Message += "; it stays: " + err.Error()
		return v.In(verdict.Backstop)
	}
	if s.ReadOnly() {
		v.Message += "; it is disarmed when " + s.ReadOnlyUntil()
		return v
	}
	if err := s.Disarm(ctx, next.access, next.state); err != nil {
		v.Message += "; " + err.Error()
		return v.In(verdict.Soon)
	}
	s.Event(corev1.EventTypeNormal, "AlarmDisarmed", operatorv1alpha1.ConditionEtcdReady, "etcd's alarm NOSPACE was disarmed: the file of each member is below 90%% of its quota")
	v.Message += "; it was disarmed just now"
	return v.In(verdict.AtOnce)
}
