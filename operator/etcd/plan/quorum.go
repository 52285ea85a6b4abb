package plan

import "slices"

// Held is what is known of the data of a recorded member.
type Held struct {
	// ID is that of the member in etcd.
	ID string
	// Gone is true when it is certainly gone. A member that does not answer may have it.
	Gone bool
	// Voters are the IDs of all members that have a vote by what this one has applied, which
	// is what it is elected by. There are none as long as it has not said that.
	Voters []string
	// Unsure is true of a member that is being added or removed: by those that have not said
	// who votes, it may have a vote or not.
	Unsure bool
	// Leaves is true of one that is being removed. Once another one has applied that, it is
	// no voter, whatever it has applied itself.
	Leaves bool
}

// QuorumLost reports whether none of the members whose data is not gone can be elected any
// more, wherever they are: by its own membership, or by any that it may have, those that are
// left are no majority. An etcd with one member loses its quorum with that one's data.
func QuorumLost(members []Held) bool {
	members = slices.DeleteFunc(slices.Clone(members), func(m Held) bool { return m.Leaves && removed(m, members) })
	if !slices.ContainsFunc(members, func(m Held) bool { return !m.Unsure }) {
		return false
	}
	return !slices.ContainsFunc(members, func(m Held) bool { return !m.Gone && electable(m, members) })
}

// removed reports whether a member has no vote by what another one that is left has applied.
func removed(m Held, members []Held) bool {
	return slices.ContainsFunc(members, func(other Held) bool {
		return !other.Gone && other.ID != m.ID && len(other.Voters) > 0 && !slices.Contains(other.Voters, m.ID)
	})
}

// electable reports whether a member that is left may be elected by those that are.
func electable(m Held, members []Held) bool {
	if len(m.Voters) > 0 {
		return elected(m, m.Voters, members)
	}
	var sure, unsure []string
	for _, other := range members {
		if other.ID == m.ID || !other.Unsure {
			sure = append(sure, other.ID)
		} else {
			unsure = append(unsure, other.ID)
		}
	}
	for chosen := range 1 << len(unsure) {
		voters := slices.Clone(sure)
		for i, id := range unsure {
			if chosen>>i&1 == 1 {
				voters = append(voters, id)
			}
		}
		if elected(m, voters, members) {
			return true
		}
	}
	return false
}

// elected reports whether a member is one of the voters, and those of them that are left are a
// majority. A voter that is not recorded any more was removed, and is not left.
func elected(m Held, voters []string, members []Held) bool {
	left := 0
	for _, other := range members {
		if !other.Gone && slices.Contains(voters, other.ID) {
			left++
		}
	}
	return slices.Contains(voters, m.ID) && left >= majority(len(voters))
}
