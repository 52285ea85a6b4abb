package plan

import (
	"strconv"
	"testing"
)

// TestQuorumLost says that a quorum is lost only where no members that may be left could
// serve.
func TestQuorumLost(t *testing.T) {
	has, gone := Held{}, Held{Gone: true}
	joins, goneJoins := Held{Unsure: true}, Held{Gone: true, Unsure: true}
	says := func(voters ...string) Held { return Held{Voters: voters} }
	learns := func(voters ...string) Held { return Held{Voters: voters, Unsure: true} }
	for _, test := range []struct {
		reason  string
		members []Held
		want    bool
	}{
		{"all have their data, whether they answer or not", []Held{has, has, has}, false},
		{"one of three", []Held{gone, has, has}, false},
		{"two of three", []Held{gone, gone, has}, true},
		{"all of three", []Held{gone, gone, gone}, true},
		{"two of five", []Held{gone, gone, has, has, has}, false},
		{"three of five", []Held{gone, gone, gone, has, has}, true},
		{"a single member", []Held{gone}, true},
		{"a single member that may come back", []Held{has}, false},
		{"a single member that may have no vote", []Held{goneJoins}, false},
		{"one of two, as while one becomes three", []Held{gone, has}, true},
		{"one of two, and the second may not have its vote yet", []Held{has, goneJoins}, false},
		{"one of two, and the one that is left may not have a vote", []Held{gone, joins}, true},
		{"two of three, and a fourth may make up for one", []Held{gone, gone, has, joins}, true},
		{"one of three, and the third may be removed", []Held{gone, has, joins}, false},
		{"two of three, one of which may be removed", []Held{gone, has, goneJoins}, true},
		{"none is recorded", nil, false},
		{"one of two voters, and the third may have got its vote since", []Held{says("0", "1"), gone, joins}, false},
		{"one of two voters, and the third has no data yet", []Held{says("0", "1"), gone, goneJoins}, true},
		{"one of two voters, and the learner that is left says so, too", []Held{says("0", "1"), gone, learns("0", "1")}, true},
		{"one of three voters, by one that has not applied that the third got its vote", []Held{says("0", "1"), gone, learns("0", "1", "2")}, false},
		{"one of three voters, and the third says that it votes", []Held{says("0", "1", "2"), gone, learns("0", "1", "2")}, false},
		{"only a learner is left", []Held{gone, learns("0")}, true},
		{"one of three, by one that does not know that it was removed", []Held{gone, has, {Voters: []string{"0", "1", "2"}, Unsure: true}}, false},
		{"one of two voters, and the third was removed", []Held{says("0", "1"), gone, {Unsure: true, Leaves: true}}, true},
		{"one of three voters, and the third may be removed", []Held{has, gone, {Unsure: true, Leaves: true}}, false},
		{"all that a voter counts on are gone or not recorded", []Held{says("0", "7", "8")}, true},
	} {
		for i := range test.members {
			test.members[i].ID = strconv.Itoa(i)
		}
		if got := QuorumLost(test.members); got != test.want {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}

// TestQuorumLostNeverWhileMajorityMayLive goes through all etcds with up to five members.
func TestQuorumLostNeverWhileMajorityMayLive(t *testing.T) {
	for size := range 6 {
		for gone := range 1 << size {
			var members []Held
			left := 0
			for i := range size {
				lost := gone>>i&1 == 1
				members = append(members, Held{ID: strconv.Itoa(i), Gone: lost})
				if !lost {
					left++
				}
			}
			if got, want := QuorumLost(members), size > 0 && left <= size/2; got != want {
				t.Errorf("%d of %d are left: %t", left, size, got)
			}
		}
	}
}
