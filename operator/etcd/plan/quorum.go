package plan

// Held is what is known of the data of a recorded member.
type Held struct {
	// Gone is true when it is certainly gone. A member that does not answer may have it.
	Gone bool
	// Unsure is true of a member that is being added or removed: it may have a vote or not.
	Unsure bool
}

// QuorumLost reports whether so many voters have lost their data for good that the others
// can't agree on anything any more, wherever they are: whichever of the unsure ones have a
// vote, those whose data is not gone are no majority. An etcd with one member loses it with that
// one's data.
func QuorumLost(members []Held) bool {
	var sure, unsure []Held
	for _, m := range members {
		if m.Unsure {
			unsure = append(unsure, m)
		} else {
			sure = append(sure, m)
		}
	}
	for chosen := range 1 << len(unsure) {
		voters, have := len(sure), held(sure)
		for i, m := range unsure {
			if chosen>>i&1 == 1 {
				voters, have = voters+1, have+held([]Held{m})
			}
		}
		if voters == 0 || have >= majority(voters) {
			return false
		}
	}
	return true
}

// held counts the members whose data is not gone.
func held(members []Held) (count int) {
	for _, m := range members {
		if !m.Gone {
			count++
		}
	}
	return count
}
