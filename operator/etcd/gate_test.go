package etcd

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// healthy is an etcd of members m0, m1 and so on with the IDs a0, a1 and so on,
// of which m0 leads, and what was recorded of it.
func healthy(members int) (State, Identity) {
	s, recorded := State{}, Identity{ClusterID: "c1", Members: map[string]string{}}
	for i := range members {
		name, id := fmt.Sprintf("m%d", i), fmt.Sprintf("a%d", i)
		s.Members = append(s.Members, Member{Name: name, ID: id, ClusterID: "c1", Leader: "a0", Term: 7, CommittedIndex: 5000, AppliedIndex: 5000})
		s.List = append(s.List, Listed{ID: id, Name: name, PeerURLs: []string{"https://" + name + ":2380"}})
		recorded.Members[name] = id
	}
	return s, recorded
}

// dead is all that is known of a member that does not answer.
func dead(name string) Member {
	return Member{Name: name, Err: errors.New("member " + name + " is dead")}
}

func TestGate(t *testing.T) {
	for reason, test := range map[string]struct {
		members int    // 3 when zero
		member  string // m1 when empty
		change  func(*State, *Identity)
		want    string // nothing is against it when empty
	}{
		"a follower of three":                   {},
		"the leader, which Next leaves to last": {member: "m0"},
		"one of five":                           {members: 5},
		"one of two is a majority of none":      {members: 2, want: "etcd has 2 members and no quorum without one of them"},
		"the only one":                          {members: 1, member: "m0", want: ErrSingleMember.Error()},
		"the only one, dead: there is nothing to ask or to keep up": {members: 1, member: "m0",
			change: func(s *State, _ *Identity) { s.Members[0], s.List, s.ListErr = dead("m0"), nil, errors.New("nobody") },
			want:   "is not ready now: member m0 is dead"},
		"a dead one serves nobody, so it can be replaced": {
			change: func(s *State, _ *Identity) { s.Members[1] = dead("m1") }},
		"another one is dead": {
			change: func(s *State, _ *Identity) { s.Members[2] = dead("m2") },
			want:   "only 2 of 3 members are ready: member m2 is dead"},
		"one of five is dead: it comes first": {members: 5,
			change: func(s *State, _ *Identity) { s.Members[4] = dead("m4") },
			want:   "only 4 of 5 members are ready: member m4 is dead"},
		"nothing to compare with": {
			change: func(_ *State, recorded *Identity) { *recorded = Identity{} },
			want:   "not recorded yet"},
		"a member nobody knows": {member: "m7",
			want: "member m7 is not among those recorded"},
		"another etcd": {
			change: func(s *State, _ *Identity) { s.Members[2].ClusterID = "c2" },
			want:   "member m2 has the cluster ID c2, but c1 is recorded"},
		"a recorded member left out of the question": {
			change: func(s *State, _ *Identity) { s.Members = s.Members[:2] },
			want:   "member m2 is recorded but was not asked"},
		"a member too many in the question": {
			change: func(_ *State, recorded *Identity) { delete(recorded.Members, "m2") },
			want:   "member m2 was asked but is not recorded"},
		"no list": {
			change: func(s *State, _ *Identity) { s.ListErr = errors.New("m0 is gone") },
			want:   "etcd's list of members is not known: m0 is gone"},
		"added by hand and not started": {
			change: func(s *State, _ *Identity) {
				s.List = append(s.List, Listed{ID: "a3", PeerURLs: []string{"https://m3:2380"}})
			},
			want: "member a3 at https://m3:2380 was added to etcd but has not been started"},
		"added by hand and started": {
			change: func(s *State, _ *Identity) { s.List = append(s.List, Listed{ID: "a3", Name: "m3"}) },
			want:   "member m3 with the ID a3 is in etcd's list but not recorded"},
		"two of one name": {
			change: func(s *State, _ *Identity) { s.List = append(s.List, s.List[2]) },
			want:   "member m2 with the ID a2 is in etcd's list but not recorded"},
		"removed by hand": {
			change: func(s *State, _ *Identity) { s.List = s.List[:2] },
			want:   "member m2 with the ID a2 is recorded but no longer in etcd's list"},
		"a learner in the list": {
			change: func(s *State, _ *Identity) { s.List[2].Learner = true },
			want:   "member m2 is a learner"},
		"a learner that has not heard of its promotion": {
			change: func(s *State, _ *Identity) { s.Members[2].Learner = true },
			want:   "member m2 is a learner"},
		"no space": {
			change: func(s *State, _ *Identity) { s.Alarms = []Alarm{{MemberID: "a1", Type: "NOSPACE"}} },
			want:   "etcd's alarm NOSPACE is raised by member m1"},
		"no majority agrees on the data, and all reads fail for it": {
			change: func(s *State, _ *Identity) {
				s.Alarms = []Alarm{{Type: "CORRUPT"}}
				for i := range s.Members {
					s.Members[i].Err = errors.New("no reads")
				}
			},
			want: "etcd's alarm CORRUPT is raised by no member in particular"},
		"a member that complains": {
			change: func(s *State, _ *Identity) { s.Members[2].Errors = []string{"etcdserver: no leader"} },
			want:   "member m2 reports errors: etcdserver: no leader"},
		"an election": {
			change: func(s *State, _ *Identity) { s.Members[0].Leader = "" },
			want:   "member m0 has no leader"},
		"a leader that moved while they were asked": {
			change: func(s *State, _ *Identity) { s.Members[2].Leader = "a2" },
			want:   "member m2 follows member m2, but m0 follows member m0"},
		"an election that was won again": {
			change: func(s *State, _ *Identity) { s.Members[2].Term = 8 },
			want:   "member m2 is in term 8, but m0 is in term 7"},
		"a leader from nowhere": {
			change: func(s *State, _ *Identity) {
				for i := range s.Members {
					s.Members[i].Leader = "ff"
				}
			},
			want: "member m0 follows an unknown member with the ID ff, which is not in etcd's list"},
		"as far behind as may be": {
			change: func(s *State, _ *Identity) { s.Members[2].AppliedIndex = 4000 }},
		"further behind": {
			change: func(s *State, _ *Identity) { s.Members[2].AppliedIndex = 3999 },
			want:   "member m2 is 1001 entries behind"},
	} {
		t.Run(reason, func(t *testing.T) {
			if test.members == 0 {
				test.members = 3
			}
			if test.member == "" {
				test.member = "m1"
			}
			s, recorded := healthy(test.members)
			if test.change != nil {
				test.change(&s, &recorded)
			}
			err := s.Gate(recorded, test.member)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("the gate says %v, want %q", err, test.want)
			}
			if single := errors.Is(err, ErrSingleMember); single != (test.members == 1) {
				t.Errorf("of %d members: ErrSingleMember is %t", test.members, single)
			}
		})
	}
}

func TestServes(t *testing.T) {
	s, _ := healthy(3)
	s.Members[0], s.Members[2] = dead("m0"), dead("m2")
	if err := s.Serves(); err != nil {
		t.Errorf("one that completes a read has a majority: %v", err)
	}
	s.Members[1] = dead("m1")
	err := s.Serves()
	if err == nil {
		t.Fatal("nobody answers, and it serves")
	}
	for _, m := range s.Members {
		if !strings.Contains(err.Error(), m.Err.Error()) {
			t.Errorf("it does not say what %s does: %v", m.Name, err)
		}
	}
	if s.Serving() != 0 {
		t.Errorf("%d serve", s.Serving())
	}
}

// TestGateAccepts is about alarms that are accepted, and no others.
func TestGateAccepts(t *testing.T) {
	for reason, test := range map[string]struct {
		alarms []Alarm
		errors []string // of m1
		want   string
	}{
		"none":                        {},
		"the accepted one":            {alarms: []Alarm{{"a1", "NOSPACE"}, {"a2", "NOSPACE"}}, errors: []string{"memberID:1  alarm:NOSPACE"}},
		"the accepted one of 3.6":     {alarms: []Alarm{{"a1", "NOSPACE"}, {"a2", "NOSPACE"}}, errors: []string{"memberID:1  alarm:NOSPACE "}},
		"another one":                 {alarms: []Alarm{{"a1", "CORRUPT"}}, want: "CORRUPT is raised by member m1"},
		"both":                        {alarms: []Alarm{{"a1", "NOSPACE"}, {"a2", "CORRUPT"}}, want: "CORRUPT is raised by member m2"},
		"one that a newer etcd knows": {alarms: []Alarm{{"a1", "NOSPACE"}, {"a2", "QUAKE"}}, want: "QUAKE is raised by member m2"},
		"another complaint":           {alarms: []Alarm{{"a1", "NOSPACE"}}, errors: []string{"memberID:1 alarm:NOSPACE", "no leader"}, want: "member m1 reports errors: no leader"},
	} {
		s, recorded := healthy(3)
		s.Alarms, s.Members[1].Errors = test.alarms, test.errors
		err := s.Gate(recorded, "m1", AlarmNoSpace)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", reason, err)
		}
		if err := s.Gate(recorded, "m1"); (err == nil) != (len(test.alarms) == 0) {
			t.Errorf("%s, not accepted: %v", reason, err)
		}
	}
}
