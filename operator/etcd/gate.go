package etcd

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrSingleMember is why Gate never lets the only member be taken down. All else
// holds then, or the member does not serve anyway. Whoever accepts that the
// registry is down meanwhile can continue.
var ErrSingleMember = errors.New("etcd has a single member, and is unavailable while that member is down")

// maxLag is how many entries of raft's log a member may be behind another. They
// are asked at the same time, but not in the same instant. At 5000 etcd itself
// begins to refuse writes.
const maxLag = 1000

// Serves returns nil when etcd serves: some member completed a linearizable
// read, for which a majority must agree. Otherwise it says what every member
// does instead.
func (s State) Serves() error {
	if s.Serving() > 0 {
		return nil
	}
	return errors.New("etcd is not available: " + s.Failures())
}

// Failures says what every member does that does not serve; it is empty when all
// do.
func (s State) Failures() string {
	var all []string
	for _, m := range s.Members {
		if m.Err != nil {
			all = append(all, m.Err.Error())
		}
	}
	return strings.Join(all, "; ")
}

// Gate returns nil when the member can be taken down now: all others serve and
// are enough without it, etcd is the one that was recorded, no change of its
// members is under way, and nothing is wrong with it but alarms of the accepted types.
// The member itself need not serve. The error says in a sentence what is against it.
//
// What a State can't tell is for how long this has been so. Let a member serve
// for some seconds before the next is taken down.
func (s State) Gate(recorded Identity, member string, accepted ...string) error {
	if len(recorded.Members) == 0 {
		return errors.New("the IDs of etcd's members are not recorded yet")
	}
	if _, ok := recorded.Members[member]; !ok {
		return fmt.Errorf("member %s is not among those recorded", member)
	}
	if err := s.Check(recorded); err != nil {
		return err
	}
	s = s.without(accepted)
	if alarm, raised := s.Raised(); raised {
		return fmt.Errorf("etcd's alarm %s is raised by %s", alarm.Type, s.RaisedBy(alarm.Type))
	}
	if err := s.othersServe(recorded, member); err != nil {
		return err
	}
	if s.ListErr != nil {
		return fmt.Errorf("etcd's list of members is not known: %w", s.ListErr)
	}
	return cmp.Or(s.Differs(recorded), s.agreed(), s.caughtUp(), enough(len(recorded.Members)))
}

// othersServe refuses when the members asked are not those recorded, or one
// other than the given one does not serve.
func (s State) othersServe(recorded Identity, member string) error {
	for _, m := range s.Members {
		if _, ok := recorded.Members[m.Name]; !ok {
			return fmt.Errorf("member %s was asked but is not recorded", m.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(recorded.Members)) {
		m, serves := s.member(name)
		switch {
		case m.Name == "":
			return fmt.Errorf("member %s is recorded but was not asked", name)
		case serves:
		case name != member:
			return fmt.Errorf("only %d of %d members are ready: %s", s.Serving(), len(s.Members), s.Failures())
		case len(recorded.Members) == 1:
			// It can't be asked for the rest, and there is nothing to keep up.
			return fmt.Errorf("%w; it is not ready now: %w", ErrSingleMember, m.Err)
		}
	}
	return nil
}

// Differs returns how etcd's own list of members is not the recorded one, nil when
// it is, when it is not known, or when nothing is recorded. Every voter in the list
// counts for the majority, also one that was never started.
func (s State) Differs(recorded Identity) error {
	if known := s.ListErr == nil && len(recorded.Members) > 0; !known {
		return nil
	}
	missing := maps.Clone(recorded.Members)
	for _, l := range s.List {
		switch {
		case l.Name == "":
			return fmt.Errorf("member %s at %s was added to etcd but has not been started", l.ID, strings.Join(l.PeerURLs, ", "))
		case l.Learner:
			return fmt.Errorf("member %s is a learner, which has no vote yet", l.Name)
		case missing[l.Name] != l.ID:
			return fmt.Errorf("member %s with the ID %s is in etcd's list but not recorded", l.Name, l.ID)
		}
		delete(missing, l.Name)
	}
	if names := slices.Sorted(maps.Keys(missing)); len(names) > 0 {
		return fmt.Errorf("member %s with the ID %s is recorded but no longer in etcd's list", names[0], missing[names[0]])
	}
	return nil
}

// agreed refuses when one that serves complains, or when they do not all follow
// one leader in one term.
func (s State) agreed() error {
	serving := s.serving()
	first := serving[0]
	for _, m := range serving {
		switch {
		case len(m.Errors) > 0:
			return fmt.Errorf("member %s reports errors: %s", m.Name, strings.Join(m.Errors, ", "))
		case m.Leader == "":
			return fmt.Errorf("member %s has no leader", m.Name)
		case m.Leader != first.Leader:
			return fmt.Errorf("member %s follows %s, but %s follows %s", m.Name, s.nameOf(m.Leader), first.Name, s.nameOf(first.Leader))
		case m.Term != first.Term:
			return fmt.Errorf("member %s is in term %d, but %s is in term %d", m.Name, m.Term, first.Name, first.Term)
		case m.Learner:
			return fmt.Errorf("member %s is a learner, which has no vote yet", m.Name)
		}
	}
	if !slices.ContainsFunc(s.List, func(l Listed) bool { return l.ID == first.Leader }) {
		return fmt.Errorf("member %s follows %s, which is not in etcd's list", first.Name, s.nameOf(first.Leader))
	}
	return nil
}

// caughtUp refuses when a member that serves is too far behind another.
func (s State) caughtUp() error {
	var newest Member
	for _, m := range s.serving() {
		if m.CommittedIndex >= newest.CommittedIndex {
			newest = m
		}
	}
	for _, m := range s.serving() {
		if m.AppliedIndex+maxLag < newest.CommittedIndex {
			return fmt.Errorf("member %s is %d entries behind %s; it must be at most %d behind", m.Name, newest.CommittedIndex-m.AppliedIndex, newest.Name, maxLag)
		}
	}
	return nil
}

// enough refuses when so many members have no majority without one of them.
func enough(members int) error {
	switch {
	case members == 1:
		return ErrSingleMember
	case members-1 < members/2+1:
		return fmt.Errorf("etcd has %d members and no quorum without one of them", members)
	}
	return nil
}
