package plan

import "slices"

// begin decides while no member joins or leaves.
func (p planner) begin() Step {
	step, replaces := p.replace()
	grows := p.missing() != None || p.Target < p.Replicas
	switch {
	case replaces && (step.Action != Hold || !grows):
		return step // with more members, one that can't be replaced may be
	case p.Alarm != "" && p.Target != p.Replicas:
		return p.alarmed() // what has begun is completed
	}
	switch dead := p.silent(None); {
	case dead == None:
	case len(p.IDs) > p.Replicas:
		return wait("the number of members is reduced when %s serves again, or is replaced: every voter must serve before that", p.name(dead))
	case p.missing() != None && !p.accepts():
		return wait("members are added when %s serves again, or is replaced: etcd refuses a member without which too few would serve", p.name(dead))
	}
	if p.Target != p.Replicas {
		return Step{Action: RecordTarget, Ordinal: None, Size: p.Replicas}
	}
	if ordinal := p.missing(); ordinal != None {
		return p.add(ordinal)
	}
	if len(p.IDs) > p.Replicas {
		return p.reduce()
	}
	if p.Servers != p.Replicas {
		return Step{Action: PointServers, Ordinal: None, Size: p.Replicas}
	}
	if step, ok := p.excess(); ok {
		return step
	}
	if p.Kept && p.Alarm == "" && p.silent(None) == None {
		return Step{Action: ReleaseVolume, Ordinal: None}
	}
	return Step{Action: Done, Ordinal: None}
}

// replace begins to replace a member, if one is to be replaced.
func (p planner) replace() (Step, bool) {
	for ordinal := range p.highest() + 1 {
		if _, member := p.IDs[ordinal]; !member {
			continue
		}
		why := p.replaced(ordinal)
		m, _ := p.listed(ordinal)
		short := p.short() && (m.Serves || !p.asked(ordinal)) // one that is silent is no more of use
		if why == "" || p.Lost[ordinal] == "" && (short || p.Alarm != "" || p.lostBut(ordinal)) {
			continue // one that serves waits until there are as many as there were, and no alarm
		}
		if p.Lost[ordinal] == "" && p.needed(ordinal) {
			continue // and until the servers use others, too
		}
		if why == p.Moves[ordinal] && len(p.IDs) > 1 && (p.silent(ordinal) != None || len(p.IDs) == 2) {
			continue // and one that moves until all others serve, and are enough
		}
		all, serve := p.voters(ordinal)
		switch {
		case all == 0 && why == p.Moves[ordinal]:
			return hold("%s can't be moved: %s, and the only member has no other copy of its data: set spec.etcd.replicas to 3, and back to 1 when %s was replaced; or change spec.etcd back", p.name(ordinal), why, p.name(ordinal)), true
		case all == 0:
			return hold("%s is the only member and can't be replaced (%s): if its data is lost, approve a copy in spec.recovery; to move it, scale to 3 first", p.name(ordinal), why), true
		case serve < majority(all+1):
			// Before the removal, the others must be enough to agree on it.
			return hold("%s is to be replaced (%s), but only %d of %d voters serve without it, and %d are needed", p.name(ordinal), why, serve, all+1, majority(all+1)), true
		}
		step := p.leaving(ordinal)
		step.Message = why
		return step, true
	}
	return Step{}, false
}

// lostBut reports whether the data of a voter other than the given one is gone.
func (p planner) lostBut(ordinal int) bool {
	return slices.ContainsFunc(p.List, func(m Listed) bool { return m.Ordinal != ordinal && !m.Learner && p.Lost[m.Ordinal] != "" })
}

// needed reports whether the servers may use no other member of several: as long as they have
// not all been replaced to use those that were added.
func (p planner) needed(ordinal int) bool {
	return len(p.IDs) > 1 && (p.Servers == 1 && ordinal == 0 || p.Servers > max(p.Replicas, len(p.IDs)))
}

// short reports whether there are fewer members than were last aimed at, and fewer than are
// asked for.
func (p planner) short() bool { return len(p.IDs) < min(p.Target, p.Replicas) }

// highest is the highest ordinal of a member.
func (p planner) highest() int {
	highest := None
	for ordinal := range p.IDs {
		highest = max(highest, ordinal)
	}
	return highest
}

// missing returns the lowest ordinal that is asked for and has no member, None when
// there is none.
func (p planner) missing() int {
	for ordinal := range p.Replicas {
		if _, member := p.IDs[ordinal]; !member {
			return ordinal
		}
	}
	return None
}

// add begins to add a member, once everything that it needs is there.
func (p planner) add(ordinal int) Step {
	if p.Nodes < p.Replicas {
		return hold("%s is not added: there is room for %d of %d members, each on a node of its own; add nodes that members may run on, or set spec.etcd.replicas back to %d", p.name(ordinal), p.Nodes, p.Replicas, p.back())
	}
	for other := p.Claimed; other < p.Replicas; other++ { // all of them before the first one is added
		if _, exists := p.Claims[other]; exists {
			return hold("%s is not added: there is a claim for the volume of %s, data-%s, that the operator did not make; move its data away and delete it, or set spec.etcd.replicas back to %d", p.name(ordinal), p.name(other), p.name(other), p.back())
		}
	}
	switch {
	case p.Named < p.Replicas:
		return Step{Action: IssueNames, Ordinal: None, Size: p.Replicas}
	case p.abandoned(ordinal): // it is removed already, and its claim is not
		return p.leaving(ordinal)
	case ordinal >= p.Size: // what is left of a member of before
		if step, ok := p.unclaim(ordinal); ok {
			return step
		}
	}
	return Step{Action: RecordJoining, Ordinal: ordinal}
}

// back is the number of members to go back to: the largest that etcd can have, and has.
func (p planner) back() int {
	switch has := len(p.IDs); {
	case has >= 5:
		return 5
	case has >= 3:
		return 3
	}
	return 1
}

// alarmed is the step while an alarm is raised.
func (p planner) alarmed() Step {
	return hold("etcd's alarm %s is raised: it comes before any change of its members", p.Alarm)
}

// reduce begins to remove the highest member, of more than are asked for.
func (p planner) reduce() Step {
	ordinal := p.highest()
	switch {
	case p.Servers > p.Replicas:
		return Step{Action: PointServers, Ordinal: None, Size: p.Replicas}
	case p.Differs != "":
		return hold("%s is not removed: %s, and what is right might go with it; find out which member has other data than most (etcdctl endpoint hashkv), and have that one replaced (kubectl registry etcd replace), or set spec.etcd.replicas back to %d", p.name(ordinal), p.Differs, p.back())
	case p.Uncompared != "":
		return wait("%s is removed when it is known that all members hold the same data: %s", p.name(ordinal), p.Uncompared)
	case p.Replicas == 1 && !p.Snapshot:
		return Step{Action: TakeSnapshot, Ordinal: None, Message: "one member has no other copy"}
	}
	return p.leaving(ordinal)
}

// join takes the member that joins one step further, or has it leave again.
func (p planner) join() Step {
	ordinal := p.Joining
	added, isAdded := p.added()
	m, recorded := p.listed(ordinal)
	lost, others := p.lost(ordinal)
	switch {
	case isAdded:
		return Step{Action: RecordID, Ordinal: ordinal, ID: added.ID}
	case !recorded && (ordinal >= p.Replicas || others || !p.accepts() && p.silentAsked()):
		return Step{Action: RecordLeft, Ordinal: ordinal} // nothing was added yet
	case ordinal >= p.Replicas, lost:
		return p.leaving(ordinal) // someone has changed their mind, or its data is lost
	case !recorded && !p.accepts():
		return wait("%s is added when %s serves again, or is replaced", p.name(ordinal), p.name(p.silent(None)))
	case !recorded:
		return Step{Action: AddLearner, Ordinal: ordinal}
	case p.Size <= ordinal:
		return Step{Action: Resize, Ordinal: ordinal, Size: ordinal + 1}
	case !m.Serves && m.Learner && others:
		return p.leaving(ordinal) // a voter is to be replaced, and one learner is the most
	case !m.Serves && p.Misplaced != "":
		return hold("%s is being added, and does not run: %s", p.name(ordinal), p.Misplaced)
	case !m.Serves:
		return wait("%s is being added, and does not serve yet", p.name(ordinal))
	case m.Learner:
		if all, serve := p.voters(None); serve+1 < majority(all+1) {
			return wait("%s gets its vote when the others serve again", p.name(ordinal))
		}
		return Step{Action: Promote, Ordinal: ordinal, ID: m.ID}
	}
	return Step{Action: Verify, Ordinal: ordinal}
}

// lost reports whether a member is to be replaced, and whether another one is whose data is
// lost: one that serves can wait.
func (p planner) lost(ordinal int) (it, another bool) {
	for other, id := range p.IDs {
		switch {
		case id == "":
		case other == ordinal:
			it = p.replaced(other) != ""
		default:
			another = another || p.Lost[other] != ""
		}
	}
	return it, another
}
