package etcd

import (
	"cmp"
	"slices"
)

// State is what an etcd said of itself. All IDs are hexadecimal, as etcdctl
// prints them.
type State struct {
	// Members are those that were asked, by name.
	Members []Member
	// List is etcd's own list of members, and Alarms are those that are raised.
	// They mean nothing when ListErr says why they are not known.
	List    []Listed
	Alarms  []Alarm
	ListErr error
}

// Member is what a member said of itself.
type Member struct {
	Name, Endpoint string
	// Err says why the member does not serve: it did not answer or it did not
	// complete a linearizable read. It names the member and its endpoint.
	Err error
	// ID and all that follows are empty when the member did not answer.
	ID, ClusterID string
	// Version is that of etcd, without "v", and StorageVersion that of its files,
	// which follows when all members run a new minor version.
	Version, StorageVersion string
	// Leader is the ID of the leader that the member follows, its own when it
	// leads, and empty when it has none.
	Leader  string
	Learner bool
	// Voters are the IDs of the members that have a vote, by what a member without a leader
	// has applied: it is elected by them, or not at all. Of others, and where that is not
	// known, there are none.
	Voters []string
	// Term, CommittedIndex and AppliedIndex are those of raft.
	Term, CommittedIndex, AppliedIndex uint64
	// Revision is the newest one that the member has applied, and Position is how far etcd is by
	// the linearizable read that it completed.
	Revision int64
	Position Position
	// DBSize is the size of the member's file, and DBSizeInUse what of it is not free, in
	// bytes.
	DBSize, DBSizeInUse int64
	// Quota is the size of the file at which the member refuses writes, in bytes.
	Quota int64
	// Errors are what the member itself complains of.
	Errors []string
}

// Leads is true when the member is the leader, as far as it knows.
func (m Member) Leads() bool { return m.ID != "" && m.ID == m.Leader }

// Listed is a member in etcd's own list.
type Listed struct {
	ID string
	// Name is empty as long as the member has not been started.
	Name     string
	PeerURLs []string
	Learner  bool
}

// Alarm is an alarm that a member raised.
type Alarm struct {
	// MemberID is empty in a CORRUPT alarm when no majority agrees on the data.
	MemberID string
	// Type is NOSPACE or CORRUPT.
	Type string
}

// Serving counts the members that serve.
func (s State) Serving() int { return len(s.serving()) }

func (s State) serving() []Member {
	return slices.DeleteFunc(slices.Clone(s.Members), func(m Member) bool { return m.Err != nil })
}

// member returns what is known of a member, which serves if ok.
func (s State) member(name string) (m Member, ok bool) {
	i := slices.IndexFunc(s.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return Member{}, false
	}
	return s.Members[i], s.Members[i].Err == nil
}

// Next returns which of the outdated members is to be replaced next: those that
// do not serve come first and the leader comes last. It is empty when none is
// outdated. MoveLeader comes before the replacement if it leads. Whether it can
// be replaced now is for Gate to say.
func (s State) Next(outdated []string) (member string, leads bool) {
	if len(outdated) == 0 {
		return "", false
	}
	rank := func(name string) int {
		m, serves := s.member(name)
		switch {
		case !serves:
			return 0
		case !m.Leads():
			return 1
		}
		return 2
	}
	member = slices.MinFunc(outdated, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return member, rank(member) == 2
}

// nameOf returns the name of the member with the ID, for a person.
func (s State) nameOf(memberID string) string {
	if memberID == "" {
		return "no member in particular"
	}
	for _, l := range s.List {
		if l.ID == memberID {
			return "member " + l.Name
		}
	}
	return "an unknown member with the ID " + memberID
}
