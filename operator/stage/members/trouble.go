package members

import (
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/verdict"
)

// etcdTrouble returns what etcd itself says is wrong with it, although its members
// answer: an alarm that is raised, or members that are not recorded. Only a person
// can resolve either, so no member is replaced meanwhile.
func (s *Stage) etcdTrouble() verdict.Verdict {
	if alarm, raised := s.found.State.Raised(); raised {
		by := s.found.State.RaisedBy(alarm.Type)
		switch alarm.Type {
		case etcd.AlarmNoSpace:
			v := verdict.Waiting(operatorv1alpha1.ReasonNoSpace, "etcd refuses every write but deletions: its alarm NOSPACE is raised by %s. Make room (remove clusters, compact, defragment each member), then disarm the alarm (etcdctl alarm disarm)", by)
			// Members get no other quota while an alarm is raised: room comes first.
			if limited := s.Volumes.QuotaDiffers(s.Registry); limited != "" {
				v.Message += "; after that: " + limited
			}
			return v
		case etcd.AlarmCorrupt:
			return verdict.Waiting(operatorv1alpha1.ReasonCorrupt, "etcd refuses every write, and its reads may be wrong: its alarm CORRUPT is raised by %s, whose data differs from the others'. Keep all volumes. If the alarm names one member of several, remove that one, disarm the alarm (etcdctl alarm disarm) and add it again; otherwise restore a snapshot", by)
		}
		return verdict.Waiting(operatorv1alpha1.ReasonMembersNotReady, "etcd's alarm %s is raised by %s", alarm.Type, by)
	}
	if s.Identity.Record == nil {
		return done
	}
	if err := s.found.State.Differs(s.Identity.Record.Identity); err != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonMembershipDiffers, "etcd's list of members differs from the recorded one, and every member in it counts toward the quorum: %s. Complete the change, or undo it: etcdctl member list, etcdctl member remove ID", err)
	}
	return done
}
