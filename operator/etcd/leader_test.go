package etcd

import "testing"

func TestHandover(t *testing.T) {
	for reason, test := range map[string]struct {
		change func(*State)
		want   string // nobody when empty
	}{
		"the follower that has applied most": {change: func(s *State) { s.Members[1].AppliedIndex-- }, want: "m2"},
		"a dead one can't lead":              {change: func(s *State) { s.Members[1].AppliedIndex--; s.Members[2] = dead("m2") }, want: "m1"},
		"a learner can't lead":               {change: func(s *State) { s.Members[1].Learner = true }, want: "m2"},
		"one that follows another":           {change: func(s *State) { s.Members[1].Leader = "a2" }, want: "m2"},
		"a dead leader can't hand over":      {change: func(s *State) { s.Members[0] = dead("m0") }},
		"no follower":                        {change: func(s *State) { s.Members = s.Members[:1] }},
	} {
		s, _ := healthy(3)
		test.change(&s)
		from, to, err := s.handover()
		if to.Name != test.want || (err == nil) != (test.want != "") || err == nil && from.Name != "m0" {
			t.Errorf("%s: from %q to %q, %v; want %q", reason, from.Name, to.Name, err, test.want)
		}
	}
}
