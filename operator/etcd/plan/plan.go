// Package plan decides what is done next to the members of an etcd: to have more or fewer
// of them, or to replace one that has lost its data. It is a pure function of what is
// recorded, observed and asked for, and knows neither Kubernetes nor a connection.
//
// A step is one change. It may be cut off before or after it took effect, or be taken by an
// operator that is killed in the middle: the next one observes what there is, and decides
// again. What must survive that is in the record before it is acted on: which member joins
// before it is added, which one leaves before it is removed. So at any time, at most one
// member is neither in etcd nor out of it.
//
// What it never does, whatever it is given: remove a voter, or give a vote to a learner,
// where the members that serve would be no majority of the voters afterwards; have a second
// learner; delete a claim of a member that etcd has, or one that it does not know.
package plan

import (
	"maps"
	"slices"
	"strconv"
)

// planner is one decision.
type planner struct {
	Spec
	Record
	Observed
}

// Next returns what to do next. The caller does it, and asks again with what is observed
// then.
func Next(spec Spec, record Record, observed Observed) Step {
	p := planner{spec, record, observed}
	switch {
	case !p.Formed:
		return wait("etcd has not formed yet, and does so with the members that it was made with before any are added or removed")
	case !slices.Contains([]int{1, 3, 5}, p.Replicas):
		return hold("etcd can't have %d members: set spec.etcd.replicas to 1, 3 or 5", p.Replicas)
	case !p.Known:
		return wait("no majority of etcd's members answers")
	}
	if step, problem := p.differs(); problem {
		return step
	}
	if p.Outdated {
		return Step{Action: Disarm, Ordinal: None}
	}
	if p.Alarm != "" && p.Alarm != NoSpace {
		return p.alarmed()
	}
	switch {
	case p.Recreate:
		return Step{Action: RecreateSet, Ordinal: None}
	case p.Leaving != None:
		return p.leave()
	case p.Joining != None:
		return p.join()
	}
	return p.begin()
}

// name is that of a member.
func (p planner) name(ordinal int) string { return p.Registry + "-etcd-" + strconv.Itoa(ordinal) }

// listed returns the member in etcd's list that is recorded under an ordinal.
func (p planner) listed(ordinal int) (Listed, bool) {
	i := slices.IndexFunc(p.List, func(m Listed) bool { return m.Ordinal == ordinal && m.ID == p.IDs[ordinal] })
	if i < 0 {
		return Listed{}, false
	}
	return p.List[i], true
}

// added returns the learner that was added for the member that joins, and is not recorded.
func (p planner) added() (Listed, bool) {
	i := slices.IndexFunc(p.List, func(m Listed) bool { return m.Ordinal == p.Joining && m.Learner && p.IDs[m.Ordinal] == "" })
	if i < 0 || p.Joining == None {
		return Listed{}, false
	}
	return p.List[i], true
}

// differs returns what is to be done about a list that is not the recorded one.
func (p planner) differs() (Step, bool) {
	learner := None
	for _, m := range p.List {
		if m.Ordinal == None {
			return hold("member %s in etcd's list is none of this registry: etcdctl member remove %s", m.ID, m.ID), true
		}
		if m.Learner && learner != None {
			return hold("etcd has two learners, %s and %s: remove one of them (etcdctl member remove)", p.name(learner), p.name(m.Ordinal)), true
		}
		if m.Learner {
			learner = m.Ordinal
		}
		if added, ok := p.added(); ok && added == m {
			continue
		}
		if m.ID != p.IDs[m.Ordinal] && m.Serves && !m.Learner {
			return hold("member %s serves with the ID %s, which is not recorded: the record of etcd's identity is older than etcd, as after it was restored from a backup; bring back a newer one, or record the ID in its key member-id.%s", p.name(m.Ordinal), m.ID, p.name(m.Ordinal)), true
		}
		if m.ID != p.IDs[m.Ordinal] {
			return hold("member %s with the ID %s is in etcd's list but not recorded: etcdctl member remove %s", p.name(m.Ordinal), m.ID, m.ID), true
		}
		if m.Learner && m.Ordinal != p.Joining && m.Ordinal != p.Leaving {
			return hold("member %s is a learner that was not added by the operator: promote it, or remove it (etcdctl member remove %s)", p.name(m.Ordinal), m.ID), true
		}
	}
	for _, ordinal := range slices.Sorted(maps.Keys(p.IDs)) {
		if _, ok := p.listed(ordinal); ok {
			continue
		}
		switch ordinal {
		case p.Leaving:
		case p.Joining: // someone removed it
			return p.leaving(ordinal), true
		default:
			return hold("member %s with the ID %s is recorded but no longer in etcd's list", p.name(ordinal), p.IDs[ordinal]), true
		}
	}
	return Step{}, false
}

// voters counts the voters, and those of them that serve, without one ordinal.
func (p planner) voters(without int) (all, serve int) {
	for _, m := range p.List {
		if m.Learner || m.Ordinal == without {
			continue
		}
		all++
		if m.Serves {
			serve++
		}
	}
	return all, serve
}

// majority is how many of so many voters must agree.
func majority(voters int) int { return voters/2 + 1 }

// silent returns the ordinal of a voter, other than the given one, that does not serve,
// None when all do.
func (p planner) silent(without int) int {
	for _, m := range p.List {
		if !m.Learner && !m.Serves && m.Ordinal != without {
			return m.Ordinal
		}
	}
	return None
}

// replaced says why a member is to be replaced, nothing when it is not.
func (p planner) replaced(ordinal int) string {
	if why := p.Lost[ordinal]; why != "" {
		return why
	}
	if p.asked(ordinal) {
		return "a person asked for it"
	}
	return p.Moves[ordinal]
}

// asked reports whether a person wants a member replaced.
func (p planner) asked(ordinal int) bool { return slices.Contains(p.Replace, p.IDs[ordinal]) }

// silentAsked reports whether a person wants a member replaced that does not serve.
func (p planner) silentAsked() bool {
	return slices.ContainsFunc(p.List, func(m Listed) bool { return !m.Learner && !m.Serves && p.asked(m.Ordinal) })
}

// accepts reports whether etcd accepts another member. That a voter is silent need not matter,
// since a learner has no vote; but etcd asks for a majority of the voters as if the learner
// were one (mayAddMember in etcd's server, with its default --strict-reconfig-check).
func (p planner) accepts() bool {
	all, serve := p.voters(None)
	return all == 1 || serve >= majority(all+1)
}

// abandoned reports whether an ordinal has a claim that may have the last copy of what it has.
func (p planner) abandoned(ordinal int) bool {
	uid := p.Claims[ordinal].UID
	return uid != "" && uid == p.Abandoned[ordinal]
}

// leaving is the step that begins to remove a member.
func (p planner) leaving(ordinal int) Step {
	return Step{Action: RecordLeaving, Ordinal: ordinal, ID: p.IDs[ordinal], UID: p.Claims[ordinal].UID}
}
