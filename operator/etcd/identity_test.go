package etcd

import (
	"errors"
	"reflect"
	"testing"
)

func TestIdentity(t *testing.T) {
	for reason, test := range map[string]struct {
		change func(*State)
		want   bool
	}{
		"all agree":                  {func(*State) {}, true},
		"nobody was asked":           {func(s *State) { *s = State{} }, false},
		"one does not answer":        {func(s *State) { s.Members[2] = dead("m2") }, false},
		"one is in another etcd":     {func(s *State) { s.Members[2].ClusterID = "c2" }, false},
		"one was not started":        {func(s *State) { s.List[2].Name = "" }, false},
		"one is a learner":           {func(s *State) { s.List[2].Learner = true }, false},
		"one more is in the list":    {func(s *State) { s.List = append(s.List, Listed{ID: "a3", Name: "m3"}) }, false},
		"one is not in the list":     {func(s *State) { s.List = s.List[:2] }, false},
		"one has a namesake":         {func(s *State) { s.List = append(s.List, s.List[2]) }, false},
		"a name is at another's URL": {func(s *State) { s.List[1].Name, s.List[2].Name = "m2", "m1" }, false},
		"the list is not known":      {func(s *State) { s.ListErr = errors.New("nobody") }, false},
	} {
		s, want := healthy(3)
		test.change(&s)
		got, ok := s.Identity()
		if ok != test.want || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %t", reason, got, ok)
		}
	}
}

func TestCheck(t *testing.T) {
	for reason, test := range map[string]struct {
		change func(*State, *Identity)
		want   *IdentityMismatch
	}{
		"as recorded":             {},
		"nothing recorded yet":    {change: func(_ *State, recorded *Identity) { *recorded = Identity{} }},
		"a dead one says nothing": {change: func(s *State, _ *Identity) { s.Members[1] = dead("m1") }},
		"a new one is not recorded yet": {change: func(s *State, _ *Identity) {
			s.Members = append(s.Members, Member{Name: "m3", ID: "a3", ClusterID: "c1"})
		}},
		"one that answers but can't read has an ID all the same": {
			change: func(s *State, _ *Identity) { s.Members[1].ID, s.Members[1].Err = "b1", errors.New("no reads") },
			want:   &IdentityMismatch{"m1", "member ID", "a1", "b1"}},
		"one that began anew": {
			change: func(s *State, _ *Identity) { s.Members[2].ClusterID, s.Members[2].ID = "c2", "b2" },
			want:   &IdentityMismatch{"m2", "cluster ID", "c1", "c2"}},
		"one that was added again": {
			change: func(s *State, _ *Identity) { s.Members[2].ID = "b2" },
			want:   &IdentityMismatch{"m2", "member ID", "a2", "b2"}},
	} {
		s, recorded := healthy(3)
		if test.change != nil {
			test.change(&s, &recorded)
		}
		err := s.Check(recorded)
		var got *IdentityMismatch
		if errors.As(err, &got); (got == nil) != (test.want == nil) || got != nil && *got != *test.want || (err == nil) != (got == nil) {
			t.Errorf("%s: %v, want %v", reason, err, test.want)
		}
	}
}

// TestJoined is about a member that was added again: until it serves as a voter
// under the recorded ID, it may have to start without data once more.
func TestJoined(t *testing.T) {
	recorded := Identity{ClusterID: "c", Members: map[string]string{"a": "1", "b": "2"}}
	serving := Member{Name: "b", ID: "2", ClusterID: "c"}
	for _, test := range []struct {
		reason string
		member Member
		listed Listed
		err    error
		want   bool
	}{
		{"it serves", serving, Listed{ID: "2", Name: "b"}, nil, true},
		{"it does not answer", Member{Name: "b", Err: errors.New("gone")}, Listed{ID: "2", Name: "b"}, nil, false},
		{"it catches up", Member{Name: "b", ID: "2", ClusterID: "c", Err: errors.New("learner")}, Listed{ID: "2", Name: "b", Learner: true}, nil, false},
		{"it has no vote yet", serving, Listed{ID: "2", Name: "b", Learner: true}, nil, false},
		{"the one of before answers", Member{Name: "b", ID: "9", ClusterID: "c"}, Listed{ID: "9", Name: "b"}, nil, false},
		{"of another cluster", Member{Name: "b", ID: "2", ClusterID: "d"}, Listed{ID: "2", Name: "b"}, nil, false},
		{"it was removed", serving, Listed{ID: "3", Name: "d"}, nil, false},
		{"etcd's list is not known", serving, Listed{ID: "2", Name: "b"}, errors.New("no list"), false},
	} {
		state := State{Members: []Member{{Name: "a", ID: "1", ClusterID: "c"}, test.member}, List: []Listed{{ID: "1", Name: "a"}, test.listed}, ListErr: test.err}
		if got := state.Joined(recorded, "b"); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
		if state.Joined(recorded, "") || state.Joined(recorded, "c") {
			t.Errorf("%s: nobody joined, or somebody else", test.reason)
		}
	}
}
