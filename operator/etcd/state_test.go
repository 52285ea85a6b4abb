package etcd

import (
	"errors"
	"testing"
)

func TestNext(t *testing.T) {
	for reason, test := range map[string]struct {
		outdated []string
		change   func(*State)
		want     string
		leads    bool
	}{
		"none":                                      {},
		"a follower before the leader":              {outdated: []string{"m0", "m1", "m2"}, want: "m1"},
		"the other follower":                        {outdated: []string{"m0", "m2"}, want: "m2"},
		"the leader last":                           {outdated: []string{"m0"}, want: "m0", leads: true},
		"a dead one first":                          {outdated: []string{"m0", "m1", "m2"}, change: func(s *State) { s.Members[2] = dead("m2") }, want: "m2"},
		"a dead one that is up to date":             {outdated: []string{"m0", "m1"}, change: func(s *State) { s.Members[2] = dead("m2") }, want: "m1"},
		"one that was not asked is as good as dead": {outdated: []string{"m1", "m7"}, want: "m7"},
		"a leader that can't read can't hand over":  {outdated: []string{"m0", "m1"}, change: func(s *State) { s.Members[0].Err = errors.New("no reads") }, want: "m0"},
	} {
		s, _ := healthy(3)
		if test.change != nil {
			test.change(&s)
		}
		if got, leads := s.Next(test.outdated); got != test.want || leads != test.leads {
			t.Errorf("%s: %q (leads: %t), want %q (%t)", reason, got, leads, test.want, test.leads)
		}
	}
}

func TestIDs(t *testing.T) {
	for n, want := range map[uint64]string{0: "", 0x8e9e05c52164694d: "8e9e05c52164694d", 0xab: "ab"} {
		if got := id(n); got != want {
			t.Errorf("%d is %q, want %q as etcdctl prints it", n, got, want)
		}
	}
}
