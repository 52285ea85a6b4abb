package etcd

import (
	"slices"
	"strings"
)

// The types of alarms. Both last until someone disarms them.
const (
	// AlarmNoSpace is raised when a member's data has reached the quota: all writes
	// but deletions are refused, also after there is room again.
	AlarmNoSpace = "NOSPACE"
	// AlarmCorrupt is raised when members hold different data: all writes are
	// refused, deletions too, and what is read depends on the member.
	AlarmCorrupt = "CORRUPT"
)

// Raised returns the alarm to act on first, if any is raised: CORRUPT before all
// others.
func (s State) Raised() (first Alarm, raised bool) {
	if len(s.Alarms) == 0 || s.ListErr != nil {
		return Alarm{}, false
	}
	if i := slices.IndexFunc(s.Alarms, func(a Alarm) bool { return a.Type == AlarmCorrupt }); i >= 0 {
		return s.Alarms[i], true
	}
	return s.Alarms[0], true
}

// RaisedBy names the members that have raised alarms of a type, for a person.
func (s State) RaisedBy(kind string) string {
	var names []string
	for _, alarm := range s.Alarms {
		if name := s.nameOf(alarm.MemberID); alarm.Type == kind && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
