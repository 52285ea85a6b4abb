package etcd

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// Recovered says how an etcd continues that has lost its quorum. It is recorded before anything
// is stopped, with all that the recovery needs: the approval may be changed or deleted
// meanwhile.
type Recovered struct {
	// ID is that of the loss, LostTime when it was noticed, and LastRevision the newest
	// revision that was known.
	ID           string    `json:"id"`
	LostTime     time.Time `json:"lostTime"`
	LastRevision int64     `json:"lastRevision,omitempty"`
	// From and Name are the copy of the data that was approved.
	From operatorv1alpha1.RecoverySource `json:"from"`
	Name string                          `json:"name"`
	// Backup is that copy where it is a backup, nil for a member.
	Backup *Restored `json:"backup,omitempty"`
	// Member is the member that etcd has at first. Cluster is the ID of the etcd that has lost
	// its quorum, and Members are those of its members, by name. Revision is the lowest one
	// that the data of a member may end with.
	Member   string            `json:"member"`
	Cluster  string            `json:"cluster"`
	Members  map[string]string `json:"members,omitempty"`
	Revision int64             `json:"revision,omitempty"`
	// Lineage is the ID of the data from then on, and Before that of the data before, empty
	// where that has no backups.
	Lineage string `json:"lineage"`
	Before  string `json:"before,omitempty"`
	// Phase is how far it is.
	Phase operatorv1alpha1.RecoveryPhase `json:"phase,omitempty"`
	// Abandoned are the claims with other copies of the data, by member. Their volumes are
	// kept, and they make way for empty ones before these members join again.
	Abandoned map[string]Claim `json:"abandoned,omitempty"`
	// Ended is the revision with which the copy ended, once etcd has served it, and Completed
	// when that was; nil before.
	Ended     int64      `json:"ended,omitempty"`
	Completed *time.Time `json:"completed,omitempty"`
}

// Claim is the claim of a member, by its UID, and the ID of the etcd cluster whose data its
// volume has.
type Claim struct {
	UID     string `json:"uid"`
	Cluster string `json:"cluster"`
}

// Pending reports whether etcd has not served yet what it is to continue with.
func (r *Recovered) Pending() bool { return r != nil && r.Completed == nil }

// Of reports whether a recovery is under way with the copy that is approved.
func (r *Recovered) Of(approved operatorv1alpha1.Recovery) bool {
	return r.Pending() && r.From == approved.From && r.Name == approved.Name
}

// Abandons returns the claim of a member that is abandoned, the zero value when none is.
func (r *Record) Abandons(member string) Claim {
	if r.Recovered == nil {
		return Claim{}
	}
	return r.Recovered.Abandoned[member]
}

// Vacated returns the record without the abandoned claim of a member, which is gone.
func (r Record) Vacated(member string) *Record {
	if r.Abandons(member) == (Claim{}) {
		return &r
	}
	now := *r.Recovered
	now.Abandoned = maps.Clone(now.Abandoned)
	delete(now.Abandoned, member)
	r.Recovered = &now
	return &r
}

// RecoveryRecord returns the record of an etcd that begins again in one member, of a copy of
// the data that its record approves. Nothing of the etcd of before runs any more. As with
// RestoredRecord, who the new one will be is known before it is. The ordinals of all members
// that there were stay claimed, and the members below the first one have pods, which their
// guards do not let start before they join.
func RecoveryRecord(from Record, ordinal int, peerURL string) *Record {
	now := *from.Recovered
	now.Phase = operatorv1alpha1.RecoveryRestoring
	from.InitialClusterState, from.Identity = contract.StateExisting, restoredIdentity(now.Lineage, now.Member, peerURL)
	from.Claimed = max(from.Claimed, from.Replicas, int32(ordinal)+1) //nolint:gosec // G115: there are fewer than mostMembers
	from.Replicas, from.Endpoints, from.Names = int32(ordinal)+1, int32(ordinal)+1, nil
	from.Joining, from.Leaving, from.LeavingClaim = "", "", ""
	from.Lineage, from.Recovered = now.Lineage, &now
	from.Newest, from.WentBack = Newest{}, nil // they are of the etcd of before
	from.StoredUnder = ""                      // the copy may be older than what was found
	if now.Backup != nil {
		from.Restored = now.Backup
	}
	return &from
}

// Done returns what is recorded once etcd has served the data, which ended with a revision.
func (r Recovered) Done(revision int64, now time.Time) *Recovered {
	now = now.UTC().Truncate(time.Second)
	r.Phase, r.Ended, r.Completed = "", revision, &now
	r.Backup, r.Members = nil, nil
	return &r
}

// guard returns what the guard of the member is told, empty when there is nothing to do for it.
func (r *Recovered) guard() string {
	if !r.Pending() || r.Phase != operatorv1alpha1.RecoveryRestoring || r.From != operatorv1alpha1.RecoverFromMember {
		return ""
	}
	return encode(contract.Recovery{Lineage: r.Lineage, Member: r.Member, ClusterID: r.Cluster, MemberID: r.Members[r.Member], Revision: r.Revision})
}

// encode returns what is recorded of a value as JSON.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // no type that is recorded can cause that
		return ""
	}
	return string(text)
}

// parseRecovered reads what is recorded of a recovery.
func parseRecovered(text string) (*Recovered, error) {
	if text == "" {
		return nil, nil
	}
	r := &Recovered{}
	err := json.Unmarshal([]byte(text), r)
	known := r.Phase == operatorv1alpha1.RecoveryStopping || r.Phase == operatorv1alpha1.RecoveryRestoring
	switch {
	case err != nil:
	case r.Pending() && !known:
		err = fmt.Errorf("its phase is %q", r.Phase)
	case r.Pending() && (r.Member == "" || r.Lineage == "" || (r.From == operatorv1alpha1.RecoverFromBackup) != (r.Backup != nil)):
		err = fmt.Errorf("it lacks the copy of the data")
	default:
		return r, nil
	}
	return nil, fmt.Errorf("%s is damaged (%w): bring back what it was before it was changed; if etcd serves, remove the key", keyRecovered, err)
}
