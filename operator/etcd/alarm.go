package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
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

// NoSpace reports whether the alarm NOSPACE is raised.
func (s State) NoSpace() bool {
	return s.ListErr == nil && slices.ContainsFunc(s.Alarms, func(a Alarm) bool { return a.Type == AlarmNoSpace })
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

// Corrupt reports whether it says that the alarm CORRUPT names it, or no member in particular. It
// says so without a majority, too, as text, whose spaces differ from one etcd to the next.
func (m Member) Corrupt() bool {
	return slices.ContainsFunc(m.Errors, func(text string) bool {
		said := strings.Fields(text)
		if !slices.Contains(said, "alarm:"+AlarmCorrupt) {
			return false
		}
		i := slices.IndexFunc(said, func(word string) bool { return strings.HasPrefix(word, alarmedMember) })
		if i < 0 {
			return true
		}
		named, err := strconv.ParseUint(strings.TrimPrefix(said[i], alarmedMember), 10, 64)
		return err != nil || named == 0 || id(named) == m.ID
	})
}

// alarmedMember is before the ID of the member that an alarm names.
const alarmedMember = "memberID:"

// without returns the state as if no alarms of these types were raised. A member lists
// the alarms among its own errors, too: etcd 3.6 with a space at the end.
func (s State) without(kinds []string) State {
	if len(kinds) == 0 {
		return s
	}
	s.Alarms = slices.DeleteFunc(slices.Clone(s.Alarms), func(a Alarm) bool { return slices.Contains(kinds, a.Type) })
	s.Members = slices.Clone(s.Members)
	for i := range s.Members {
		s.Members[i].Errors = slices.DeleteFunc(slices.Clone(s.Members[i].Errors), func(text string) bool {
			return slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasSuffix(strings.TrimSpace(text), "alarm:"+kind) })
		})
	}
	return s
}

// roomShare is how much of its quota, in percent, a member's file must be below for
// NOSPACE to be disarmed: etcd would raise it again soon.
const roomShare = 90

// NearlyFullShare is how much of its quota, in percent, the file of a member has that is
// nearly full.
const NearlyFullShare = 80

// NearlyFull reports whether a member that says its quota is soon full.
func (m Member) NearlyFull() bool { return m.Quota > 0 && m.DBSize*100 > m.Quota*NearlyFullShare }

// Full reports whether a member that says its quota has so large a file that NOSPACE is not
// to be disarmed.
func (m Member) Full() bool { return m.Quota > 0 && m.DBSize*100 >= m.Quota*roomShare }

// Fits reports whether a member would not be Full after a defragmentation. What a
// compaction has freed last counts as in use until the member writes again.
func (m Member) Fits() bool { return m.DBSizeInUse*100 < m.Quota*roomShare }

// Full returns why NOSPACE is not to be disarmed, nil when it can be: all recorded members
// serve, no other alarm is raised, and the file of each is well below its quota.
func (s State) Full(recorded Identity) error {
	if len(recorded.Members) == 0 {
		return errors.New("the IDs of etcd's members are not recorded yet")
	}
	if s.ListErr != nil {
		return fmt.Errorf("etcd's list of members is not known: %w", s.ListErr)
	}
	if err := s.Check(recorded); err != nil {
		return err
	}
	if alarm, raised := s.without([]string{AlarmNoSpace}).Raised(); raised {
		return fmt.Errorf("etcd's alarm %s is raised by %s", alarm.Type, s.RaisedBy(alarm.Type))
	}
	if err := s.othersServe(recorded, ""); err != nil {
		return err
	}
	if err := s.Differs(recorded); err != nil {
		return err
	}
	for _, m := range s.Members {
		if m.Quota <= 0 {
			return fmt.Errorf("member %s does not say what its quota is", m.Name)
		}
		if m.Full() {
			return fmt.Errorf("the file of member %s has %d MiB, of which %d are in use, and its quota is %d MiB", m.Name, m.DBSize>>20, m.DBSizeInUse>>20, m.Quota>>20)
		}
	}
	return nil
}

// DisarmNoSpace disarms the alarms NOSPACE that were raised, and no others. The State
// should be fresh, and Full must have returned nil. One that is disarmed already is no
// error, and a member that is full raises it again.
func (a Access) DisarmNoSpace(ctx context.Context, s State) error {
	return a.disarm(ctx, s, AlarmNoSpace, pb.AlarmType_NOSPACE)
}

// DisarmCorrupt disarms the alarms CORRUPT that were raised, and no others: those of members
// that were removed, while the ones that are left hold the same data.
func (a Access) DisarmCorrupt(ctx context.Context, s State) error {
	return a.disarm(ctx, s, AlarmCorrupt, pb.AlarmType_CORRUPT)
}

// disarm disarms the alarms of a type that were raised.
func (a Access) disarm(ctx context.Context, s State, name string, kind pb.AlarmType) error {
	err := a.change(ctx, s, "", func(ctx context.Context, client *clientv3.Client) error {
		for _, alarm := range s.Alarms {
			if alarm.Type != name {
				continue
			}
			member, err := strconv.ParseUint(alarm.MemberID, 16, 64)
			if err != nil {
				return fmt.Errorf("the alarm of a member with the ID %q: %w", alarm.MemberID, err)
			}
			if _, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: member, Alarm: kind}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("disarm %s: %w", name, err)
	}
	return nil
}
