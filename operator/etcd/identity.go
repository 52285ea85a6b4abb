package etcd

import (
	"fmt"
	"maps"
	"slices"
)

// Identity is by what an etcd and its data are known again.
type Identity struct {
	ClusterID string
	// Members are the members' IDs by their names.
	Members map[string]string
}

// Identity returns the identity to record. There is none as long as not every
// member that was asked has answered, they disagree on the cluster, or etcd's
// list is of others or has learners or members that were never started.
func (s State) Identity() (Identity, bool) {
	if len(s.Members) == 0 || s.ListErr != nil {
		return Identity{}, false
	}
	identity, listed := Identity{ClusterID: s.Members[0].ClusterID, Members: map[string]string{}}, map[string]string{}
	for _, m := range s.Members {
		if m.ID == "" || m.ClusterID != identity.ClusterID {
			return Identity{}, false
		}
		identity.Members[m.Name] = m.ID
	}
	for _, l := range s.List {
		if l.Learner {
			return Identity{}, false
		}
		listed[l.Name] = l.ID
	}
	// Names need not be unique in etcd's list.
	if len(s.List) != len(s.Members) || !maps.Equal(identity.Members, listed) {
		return Identity{}, false
	}
	return identity, true
}

// IdentityMismatch says that a member is not the one that was recorded: it
// belongs to another etcd, or it has lost its data.
type IdentityMismatch struct {
	// Member is the name of the member that answered.
	Member string
	// What differs: "cluster ID" or "member ID".
	What               string
	Recorded, Observed string
}

// Error names both IDs.
func (e *IdentityMismatch) Error() string {
	return fmt.Sprintf("member %s has the %s %s, but %s is recorded: this is another etcd or it has lost its data; change nothing before you know which",
		e.Member, e.What, e.Observed, e.Recorded)
}

// Check compares the members that answered with what was recorded of them, and
// returns an *IdentityMismatch when one differs. Nothing recorded is nothing to
// compare; neither is a member that does not answer.
func (s State) Check(recorded Identity) error {
	for _, m := range s.Members {
		if m.ID == "" {
			continue
		}
		if recorded.ClusterID != "" && m.ClusterID != recorded.ClusterID {
			return &IdentityMismatch{Member: m.Name, What: "cluster ID", Recorded: recorded.ClusterID, Observed: m.ClusterID}
		}
		if want, ok := recorded.Members[m.Name]; ok && m.ID != want {
			return &IdentityMismatch{Member: m.Name, What: "member ID", Recorded: want, Observed: m.ID}
		}
	}
	return nil
}

// Joined reports whether a member serves as the one that was recorded, with a
// vote: it has all data that it would have to have, and must never start without
// any again.
func (s State) Joined(recorded Identity, name string) bool {
	m, serves := s.member(name)
	if !serves || s.ListErr != nil || m.ID == "" || m.ID != recorded.Members[name] || m.ClusterID != recorded.ClusterID {
		return false
	}
	return slices.Contains(s.voters(), m.ID)
}

// voters returns the IDs of the members in etcd's list that have a vote.
func (s State) voters() []string {
	var out []string
	for _, l := range s.List {
		if !l.Learner {
			out = append(out, l.ID)
		}
	}
	return out
}
