package etcd

import (
	"errors"
	"testing"
)

func TestRaised(t *testing.T) {
	for reason, test := range map[string]struct {
		alarms  []Alarm
		listErr error
		kind    string // of the first, empty when none is raised
		by      string
	}{
		"none":                          {},
		"one is full":                   {alarms: []Alarm{{"a1", "NOSPACE"}}, kind: "NOSPACE", by: "member m1"},
		"all are full":                  {alarms: []Alarm{{"a2", "NOSPACE"}, {"a0", "NOSPACE"}, {"a1", "NOSPACE"}}, kind: "NOSPACE", by: "member m0, member m1, member m2"},
		"wrong data is worse than much": {alarms: []Alarm{{"a1", "NOSPACE"}, {"a2", "CORRUPT"}}, kind: "CORRUPT", by: "member m2"},
		"nobody knows who is right":     {alarms: []Alarm{{"", "CORRUPT"}}, kind: "CORRUPT", by: "no member in particular"},
		"one that is gone":              {alarms: []Alarm{{"ff", "NOSPACE"}}, kind: "NOSPACE", by: "an unknown member with the ID ff"},
		"one that a newer etcd knows":   {alarms: []Alarm{{"a0", "QUAKE"}}, kind: "QUAKE", by: "member m0"},
		"they are not known":            {alarms: []Alarm{{"a1", "NOSPACE"}}, listErr: errors.New("nobody")},
	} {
		s, _ := healthy(3)
		s.Alarms, s.ListErr = test.alarms, test.listErr
		alarm, raised := s.Raised()
		if alarm.Type != test.kind || raised != (test.kind != "") || raised && s.RaisedBy(alarm.Type) != test.by {
			t.Errorf("%s: %+v (%t) by %s", reason, alarm, raised, s.RaisedBy(alarm.Type))
		}
	}
}

// TestDiffers is about what is no difference; what is, TestGate has.
func TestDiffers(t *testing.T) {
	s, recorded := healthy(3)
	if err := s.Differs(recorded); err != nil {
		t.Errorf("as recorded: %v", err)
	}
	s.List = s.List[:2]
	if err := s.Differs(recorded); err == nil {
		t.Error("a member is missing, and nothing differs")
	}
	if err := s.Differs(Identity{}); err != nil {
		t.Errorf("nothing is recorded: %v", err)
	}
	s.ListErr = errors.New("nobody")
	if err := s.Differs(recorded); err != nil {
		t.Errorf("the list is not known: %v", err)
	}
}

// TestCorrupt understands what a member of etcd v3.6 or v3.7 says of the alarm.
func TestCorrupt(t *testing.T) {
	for _, test := range []struct {
		reason string
		errors []string
		want   bool
	}{
		{"nothing", nil, false},
		{"it has no leader", []string{"etcdserver: no leader"}, false},
		{"it is named, by etcd v3.6", []string{"etcdserver: no leader", "memberID:161 alarm:CORRUPT "}, true},
		{"it is named, by etcd v3.7", []string{"memberID:161  alarm:CORRUPT"}, true},
		{"another one is named", []string{"memberID:162  alarm:CORRUPT"}, false},
		{"both are", []string{"memberID:162 alarm:CORRUPT", "memberID:161 alarm:CORRUPT"}, true},
		{"none is named", []string{"alarm:CORRUPT"}, true},
		{"it is full", []string{"memberID:161 alarm:NOSPACE "}, false},
	} {
		if got := (Member{ID: "a1", Errors: test.errors}).Corrupt(); got != test.want {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}
